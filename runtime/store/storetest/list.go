package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var listTests = []test{
	{"pages hold every thread once", listPages},
	{"pages stand while threads are added", listStable},
	{"page sizes", listSizes},
	{"filters", listFilters},
	{"bad filters are refused", listRefuses},
	{"sorted by each key", listSorts},
	{"pages of each order while rows change", listChanging},
	{"age and name", listAges},
}

// registerAt registers a thread created ms milliseconds after the others.
func (h *harness) registerAt(directive string, ms int) thread.ID {
	h.Helper()
	n := h.newThread(directive, "")
	n.Now = h.now.Add(time.Duration(ms) * time.Millisecond)
	rec, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	return rec.ThreadID
}

// walk reads all pages of a filter.
func (h *harness) walk(f store.Filter) (all []thread.Record, pages int) {
	h.Helper()
	for {
		rows, next, err := h.List(h.ctx, f)
		h.noError(err)
		all, pages = append(all, rows...), pages+1
		if next == "" {
			return all, pages
		}
		f.Cursor = next
	}
}

func listPages(h *harness) {
	const threads = 25
	for i := range threads {
		h.registerAt("d", i/3) // three share each millisecond
	}
	for limit, wantPages := range map[int]int{1: 25, 7: 4, 25: 1, 24: 2, 0: 1} {
		all, pages := h.walk(store.Filter{Limit: limit})
		if len(all) != threads || pages != wantPages {
			h.Errorf("limit %d: %d rows on %d pages", limit, len(all), pages)
		}
		seen := make(map[thread.ID]bool)
		for i, r := range all {
			if seen[r.ThreadID] || (i > 0 && r.CreatedAt.After(all[i-1].CreatedAt)) {
				h.Errorf("limit %d: row %d (%s, %s) is out of order or twice", limit, i, r.ThreadID, r.CreatedAt)
			}
			seen[r.ThreadID] = true
		}
	}
	if rows, next, err := h.List(h.ctx, store.Filter{Directive: "none"}); err != nil || len(rows) != 0 || next != "" {
		h.Errorf("empty list: %v, %q, %v", rows, next, err)
	}
}

func listStable(h *harness) {
	for i := range 6 {
		h.registerAt("d", i)
	}
	first, next, err := h.List(h.ctx, store.Filter{Limit: 3})
	h.noError(err)
	h.registerAt("later", 100)
	rest, _, err := h.List(h.ctx, store.Filter{Limit: 3, Cursor: next})
	h.noError(err)
	if len(rest) != 3 || !rest[0].CreatedAt.Before(first[2].CreatedAt) {
		h.Errorf("first page %s, second %s", ids(first), ids(rest))
	}
}

func listSizes(h *harness) {
	const threads = store.MaxPage + 3
	for range threads {
		h.register("d", "")
	}
	for limit, want := range map[int]int{0: store.DefaultPage, 3: 3, store.MaxPage: store.MaxPage, threads: store.MaxPage} {
		rows, next, err := h.List(h.ctx, store.Filter{Limit: limit})
		h.noError(err)
		if len(rows) != want || next == "" {
			h.Errorf("limit %d: %d rows, next %q", limit, len(rows), next)
		}
	}
}

func listFilters(h *harness) {
	parent := h.running("parent", "")
	plain := h.registerAt("Review/Security", 1)
	child := h.running("review/100%", parent)
	done := h.running("x_y", parent)
	h.apply(h.finished(done, thread.Completed))
	named := h.newThread("n", "")
	named.Name, named.Now = "Fix the Lexer", h.now.Add(2*time.Millisecond)
	rec, _, err := h.Register(h.ctx, named, claimNothing)
	h.noError(err)

	for _, tt := range []struct {
		filter store.Filter
		want   []thread.ID // newest first; of one millisecond by descending id
	}{
		{store.Filter{States: []thread.State{thread.Completed}}, []thread.ID{done}},
		{store.Filter{States: []thread.State{thread.Running, thread.Completed, thread.Running}}, []thread.ID{done, child, parent}},
		{store.Filter{States: []thread.State{thread.Created}}, []thread.ID{rec.ThreadID, plain}},
		{store.Filter{Directive: "Review/Security"}, []thread.ID{plain}},
		{store.Filter{ParentID: parent}, []thread.ID{done, child}},
		{store.Filter{ParentID: parent, States: []thread.State{thread.Running}}, []thread.ID{child}},
		{store.Filter{Text: "review"}, []thread.ID{plain, child}},
		{store.Filter{Text: "the lexer"}, []thread.ID{rec.ThreadID}},
		{store.Filter{Text: "0%"}, []thread.ID{child}},
		{store.Filter{Text: "x_"}, []thread.ID{done}},
		{store.Filter{Text: `\`}, nil},
		{store.Filter{Text: "100", States: []thread.State{thread.Completed}}, nil},
	} {
		rows, _ := h.walk(tt.filter)
		if got := ids(rows); got != fmt.Sprint(tt.want) {
			h.Errorf("%+v: %s, want %v", tt.filter, got, tt.want)
		}
		tt.filter.Limit = 1
		if rows, _ := h.walk(tt.filter); ids(rows) != fmt.Sprint(tt.want) {
			h.Errorf("%+v page by page: %s, want %v", tt.filter, ids(rows), tt.want)
		}
	}
}

func listRefuses(h *harness) {
	for i := range 3 {
		h.registerAt("d", i)
	}
	_, next, err := h.List(h.ctx, store.Filter{Limit: 1})
	h.noError(err)
	for name, f := range map[string]store.Filter{
		"not a cursor":             {Cursor: "page 2"},
		"cursor of nothing":        {Cursor: "e30"},
		"cursor with a tail":       {Cursor: next + "x"},
		"cursor of another filter": {Cursor: next, Directive: "d"},
		"cursor of another order":  {Cursor: next, Sort: store.Sort{By: store.BySpend}},
		"cursor of the other end":  {Cursor: next, Sort: store.Sort{Ascending: true}},
	} {
		if _, _, err := h.List(h.ctx, f); !errors.Is(err, store.ErrBadCursor) {
			h.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := h.List(h.ctx, store.Filter{Limit: -1}); err == nil {
		h.Error("a negative limit was accepted")
	}
	if _, _, err := h.List(h.ctx, store.Filter{States: []thread.State{"paused"}}); err == nil {
		h.Error("an unknown state was accepted")
	}
	if _, _, err := h.List(h.ctx, store.Filter{Sort: store.Sort{By: "age"}}); err == nil {
		h.Error("an unknown sort key was accepted")
	}
}

// listed are threads that differ in all that lists are ordered by, each key in another
// order: their names, and some of their values, are the same.
func (h *harness) listed() []thread.ID {
	h.Helper()
	var ids []thread.ID
	for i, name := range []string{"beta", "Alpha", "beta", "", "gamma", "Beta"} {
		n := h.newThread("d", "")
		n.Name, n.Now = name, h.now.Add(time.Duration(i)*time.Millisecond)
		rec, _, err := h.Register(h.ctx, n, claimNothing)
		h.noError(err)
		h.apply(store.Claimed(rec.ThreadID, thread.Process{PID: 4711, Host: "host"}, n.Now.Add(time.Duration(i*7%5)*time.Second)))
		h.noError(h.RecordCost(h.ctx, rec.ThreadID, thread.Cost{Spend: thread.Micros(i * 5 % 4)}, int64(i*3%5)))
		ids = append(ids, rec.ThreadID)
	}
	return ids
}

// sortKeys are how a row compares with another by each key.
var sortKeys = map[store.SortKey]func(a, b thread.Record) int{
	store.ByCreated:  func(a, b thread.Record) int { return a.CreatedAt.Compare(b.CreatedAt) },
	store.ByLastUsed: func(a, b thread.Record) int { return a.LastUsed.Compare(b.LastUsed) },
	store.ByTokens:   func(a, b thread.Record) int { return cmp.Compare(a.TokenCount, b.TokenCount) },
	store.BySpend:    func(a, b thread.Record) int { return cmp.Compare(a.Cost.Spend, b.Cost.Spend) },
	store.ByName:     func(a, b thread.Record) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) },
}

func listSorts(h *harness) {
	made := h.listed()
	if len(sortKeys) != len(store.SortKeys()) {
		h.Errorf("%d sort keys are tested", len(sortKeys))
	}
	for _, by := range store.SortKeys() {
		for _, ascending := range []bool{true, false} {
			f := store.Filter{Directive: "d", Sort: store.Sort{By: by, Ascending: ascending}}
			rows, _ := h.walk(f)
			inOrder := slices.IsSortedFunc(rows, func(a, b thread.Record) int {
				order := cmp.Or(sortKeys[by](a, b), cmp.Compare(a.ThreadID, b.ThreadID))
				if ascending {
					return order
				}
				return -order
			})
			if !inOrder || len(rows) != len(made) {
				h.Errorf("by %+v: %s", f.Sort, ids(rows))
			}
			for f.Limit = 1; f.Limit < 4; f.Limit++ {
				if pages, _ := h.walk(f); ids(pages) != ids(rows) {
					h.Errorf("by %+v, %d a page: %s, want %s", f.Sort, f.Limit, ids(pages), ids(rows))
				}
			}
		}
	}
}

// listChanging reads page by page while one row changes all that lists are ordered by:
// all others come once.
func listChanging(h *harness) {
	made := h.listed()
	for _, by := range store.SortKeys() {
		for _, ascending := range []bool{true, false} {
			f := store.Filter{Sort: store.Sort{By: by, Ascending: ascending}, Limit: 1}
			seen := map[thread.ID]int{}
			for i := 0; ; i++ {
				rows, next, err := h.List(h.ctx, f)
				h.noError(err)
				for _, r := range rows {
					seen[r.ThreadID]++
				}
				if f.Cursor = next; next == "" {
					break
				}
				spend := thread.Micros(i % 2 * 1000)
				h.noError(h.RecordCost(h.ctx, made[2], thread.Cost{Spend: spend}, int64(spend)))
				_, err = h.Label(h.ctx, made[2], store.LabelChange{Name: []string{"aaa", "zzz"}[i%2]}, h.now)
				h.noError(err)
			}
			for i, id := range made {
				if i != 2 && seen[id] != 1 {
					h.Errorf("by %+v: %s came %d times", f.Sort, id, seen[id])
				}
			}
		}
	}
}

func listAges(h *harness) {
	made := h.listed()
	rows, _ := h.walk(store.Filter{Sort: store.Sort{By: store.ByLastUsed, Ascending: true}})
	at := rows[3].LastUsed
	for _, by := range store.SortKeys() {
		before, _ := h.walk(store.Filter{UsedBefore: at, Sort: store.Sort{By: by}})
		since, _ := h.walk(store.Filter{UsedSince: at, Sort: store.Sort{By: by}, Limit: 2})
		none, _ := h.walk(store.Filter{UsedSince: at, UsedBefore: at, Sort: store.Sort{By: by}})
		if len(before)+len(since) != len(made) || len(none) > 0 || len(before) == 0 {
			h.Errorf("by %s: %s before and %s since %s", by, ids(before), ids(since), at)
		}
		for _, r := range before {
			if !r.LastUsed.Before(at) {
				h.Errorf("%s was last used at %s, not before %s", r.ThreadID, r.LastUsed, at)
			}
		}
	}
	if rows, _ := h.walk(store.Filter{Name: "BET"}); len(rows) != 3 {
		h.Errorf("by a part of the name: %s", ids(rows))
	}
	if rows, _ := h.walk(store.Filter{Name: "d-"}); len(rows) != 0 {
		h.Errorf("a part of the id is none of the name: %s", ids(rows))
	}
}
