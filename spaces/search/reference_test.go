package search_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/search/query"
)

// The reference looks at every word of every document for every query. It knows
// nothing of indexes, and is compared with one on generated items.

// entry is an item as the reference has it.
type entry struct {
	kind    item.Kind
	space   item.Space
	id      string
	fields  map[string][]string // the words of each, in small letters without marks
	facts   map[string][]string
	name    string
	changed time.Time
}

// drawnItem is an item to be written.
type drawnItem struct {
	space                          item.Space
	folder, file, title, desc, cat string
	body, version                  string
	tags                           []string
	minutes                        int
}

// small is a few words, some of which begin or nearly are others.
var small = []string{"lint", "linter", "lint-fix", "go", "gone", "form", "from", "Zürich", "zurich", "a", "b", "ab", "rye", "and", "42", "検索", "検索エンジンの使い方", "GPT4の", "ที่ดี"}

func words(r *rapid.T, most int, label string) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(small), 0, most).Draw(r, label), rapid.SampledFrom([]string{" ", ", ", " -- "}).Draw(r, "between"))
}

func drawItem(r *rapid.T) drawnItem {
	return drawnItem{
		space:  rapid.SampledFrom([]item.Space{item.Project, item.User}).Draw(r, "space"),
		folder: rapid.SampledFrom([]string{"", "rye/", "rye/core/", "go/"}).Draw(r, "folder"),
		file:   rapid.SampledFrom([]string{"lint", "go", "form", "x1", "x2", "x3", "x4"}).Draw(r, "file"),
		title:  words(r, 3, "title"), desc: words(r, 3, "description"), body: words(r, 8, "body"),
		cat:     rapid.SampledFrom([]string{"", "core", "Core", "notes"}).Draw(r, "category"),
		version: rapid.SampledFrom([]string{"", "1.2", "1.10", "2.0.1"}).Draw(r, "version"),
		tags:    rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"go", "style"}), 0, 2, rapid.ID).Draw(r, "tags"),
		minutes: rapid.IntRange(1, 5).Draw(r, "minutes"),
	}
}

func (d drawnItem) text() string {
	return fmt.Sprintf("---\ntitle: %q\ndescription: %q\ncategory: %q\nversion: %q\ntags: [%s]\n---\n\n%s\n",
		d.title, d.desc, d.cat, d.version, strings.Join(d.tags, ", "), d.body)
}

func (d drawnItem) entry() entry {
	id := d.folder + d.file
	e := entry{
		kind: item.Knowledge, space: d.space, id: id, name: d.file, changed: day.Add(time.Duration(d.minutes) * time.Minute),
		fields: map[string][]string{
			"title": split(d.title), "description": split(d.desc), "body": split(d.body),
			"category": split(d.cat + " " + strings.Join(d.tags, " ")), "name": split(d.file + " " + id),
		},
		facts: map[string][]string{"tags": d.tags},
	}
	for key, value := range map[string]string{"category": d.cat, "version": d.version} {
		if value != "" {
			e.facts[key] = []string{strings.ToLower(value)}
		}
	}
	return e
}

var day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func split(text string) []string {
	text = query.Apart(strings.NewReplacer("ü", "u").Replace(strings.ToLower(text)))
	return strings.FieldsFunc(text, func(r rune) bool { return !query.IsWordRune(r) })
}

// occurrences are where the words of a term stand in others: the first of them. A
// prefix, fuzzy or not.
func occurrences(term query.Node, in []string, fuzzy int) (at []int, length int) {
	wanted := split(term.Text)
	plain := !term.Quoted && !term.Prefix && query.Word(term.Text)
	for i := 0; i+len(wanted) <= len(in); i++ {
		ok := true
		for j, w := range wanted {
			is := in[i+j]
			switch last := j == len(wanted)-1; {
			case is == w, last && term.Prefix && strings.HasPrefix(is, w):
			case plain && len(w) >= 3 && item.EditDistance(w, is, 3) <= min(fuzzy, map[bool]int{true: 1, false: 3}[len(w) < 5]):
			default:
				ok = false
			}
		}
		if ok {
			at = append(at, i)
		}
	}
	return at, len(wanted)
}

type options struct {
	fields      []string
	fuzzy, near int
}

func (e entry) matches(n query.Node, o options) bool {
	in := o.fields
	if len(in) == 0 {
		in = search.Fields()
	}
	switch n.Op {
	case query.All:
		return true
	case query.Not:
		return !e.matches(n.Of[0], o)
	case query.Or:
		return slices.ContainsFunc(n.Of, func(of query.Node) bool { return e.matches(of, o) })
	case query.Term:
		return slices.ContainsFunc(in, func(f string) bool { at, _ := occurrences(n, e.fields[f], o.fuzzy); return len(at) > 0 })
	case query.And:
	}
	var together []query.Node
	for _, of := range n.Of {
		if !e.matches(of, o) {
			return false
		}
		if of.Op == query.Term {
			together = append(together, of)
		}
	}
	return o.near == 0 || len(together) < 2 || slices.ContainsFunc(in, func(f string) bool { return near(together, e.fields[f], o) })
}

// near reports whether all terms stand so that no more than o.near words are between
// the end of each and the beginning of the last.
func near(terms []query.Node, in []string, o options) bool {
	for last := range in {
		all := true
		for _, term := range terms {
			at, length := occurrences(term, in, o.fuzzy)
			all = all && slices.ContainsFunc(at, func(i int) bool { return i <= last && last-(i+length) <= o.near })
		}
		begins := slices.ContainsFunc(terms, func(term query.Node) bool {
			at, _ := occurrences(term, in, o.fuzzy)
			return slices.Contains(at, last)
		})
		if all && begins {
			return true
		}
	}
	return false
}

func (e entry) passes(q search.Query) bool {
	if q.Source != "" && e.space != q.Source {
		return false
	}
	if q.Scope == "knowledge.rye.*" && !strings.HasPrefix(e.id, "rye/") {
		return false
	}
	for key, wanted := range q.Filters {
		has := e.facts[key]
		ok := slices.ContainsFunc(wanted, func(w string) bool { return slices.Contains(has, strings.ToLower(w)) })
		switch {
		case wanted[0] == "!core":
			ok = !slices.Contains(has, "core")
		case wanted[0] == ">=1.9":
			ok = slices.ContainsFunc(has, func(v string) bool { return v == "1.10" || v == "2.0.1" })
		case key == "date_from":
			ok = !e.changed.Before(day.Add(3 * time.Minute))
		}
		if !ok {
			return false
		}
	}
	return true
}

func drawQuery(r *rapid.T) search.Query {
	var parts []string
	for range rapid.IntRange(1, 4).Draw(r, "parts") {
		parts = append(parts, rapid.SampledFrom([]string{
			"lint", "lint*", "go", `"go go"`, `"lint fix"`, "lint-fix", "form", "fron", "from", "zürich", "ZURICH", "a", "b", "a*", "NOT b", "NOT (a b)",
			"(a OR b)", "(go OR NOT a)", "OR ab", "*", "rye/core", "42", `"and"`, "lintr", "x1", "AND a", "検索", "エンジン*", "gpt4", `"索エ"`, "NOT 使い", "ดี",
		}).Draw(r, "part"))
	}
	q := search.Query{
		Text:  strings.Join(parts, " "),
		Scope: rapid.SampledFrom([]string{"", "", "knowledge", "knowledge.rye.*"}).Draw(r, "scope"), Sort: rapid.SampledFrom(append(search.Sorts(), "")).Draw(r, "sort"),
		Source: rapid.SampledFrom([]item.Space{"", "", item.Project, item.User}).Draw(r, "source"), Limit: search.MaxLimit,
	}
	q.Fields = rapid.SampledFrom([][]string{nil, nil, {"body"}, {"title", "name"}}).Draw(r, "fields")
	q.Fuzzy = rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(r, "fuzzy")
	q.Near = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(r, "near")
	q.Where = rapid.SampledFrom([]map[string]string{nil, nil, nil, {"body": "a OR go"}}).Draw(r, "where")
	q.Filters = rapid.SampledFrom([]map[string][]string{
		nil, nil, nil, {"category": {"core"}}, {"category": {"!core"}}, {"tags": {"go", "style"}}, {"version": {">=1.9"}},
		{"date_from": {day.Add(3 * time.Minute).Format(time.RFC3339)}}, {"category": {"CORE"}, "tags": {"go"}},
	}).Draw(r, "filters")
	return q
}

// TestReference compares the index with looking at everything.
func TestReference(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runs := 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		roots := resolve.Roots{Project: filepath.Join(dir, fmt.Sprint(runs), "p"), User: filepath.Join(dir, fmt.Sprint(runs), "u")}
		entries := map[string]entry{}
		for _, d := range rapid.SliceOfN(rapid.Custom(drawItem), 1, 12).Draw(r, "items") {
			root := roots.Project
			if d.space == item.User {
				root = roots.User
			}
			path := filepath.Join(root, ".ai", "knowledge", d.folder+d.file+".md")
			entries[path] = d.entry()
			writeAt(r, path, d.text(), entries[path].changed)
		}
		x, err := search.Open(context.Background(), "", resolve.New(roots))
		if err != nil {
			r.Fatal(err)
		}
		defer func() { _ = x.Close() }()
		for range 6 {
			q := drawQuery(r)
			node, err := query.Parse(q.Text)
			if err != nil {
				continue
			}
			compare(r, x, q, node, slices.Collect(maps.Values(entries)))
		}
	})
}

func writeAt(t rapid.TB, path, text string, at time.Time) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func compare(r *rapid.T, x *search.Index, q search.Query, node query.Node, entries []entry) {
	var want []string
	rank := func(e entry) string { return fmt.Sprintf("%s/%s/%s", e.space, e.kind, e.id) }
	slices.SortFunc(entries, func(a, b entry) int {
		order := cmp.Or(cmp.Compare(slices.Index(item.Spaces(), a.space), slices.Index(item.Spaces(), b.space)), cmp.Compare(a.id, b.id))
		switch q.Sort {
		case search.ByName:
			return cmp.Or(cmp.Compare(a.name, b.name), order)
		case search.ByDate:
			return cmp.Or(b.changed.Compare(a.changed), order)
		default:
			return order
		}
	})
	body, err := query.Parse(cmp.Or(q.Where["body"], "*"))
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range entries {
		o := options{q.Fields, q.Fuzzy, q.Near}
		if e.passes(q) && e.matches(node, o) && e.matches(body, options{[]string{"body"}, q.Fuzzy, q.Near}) {
			want = append(want, rank(e))
		}
	}
	page := find(r, x, q)
	got := ids(page)
	if q.Sort == search.ByScore || q.Sort == "" {
		inOrder(r, q, page)
		slices.Sort(got)
		slices.Sort(want)
	}
	if page.Total != len(want) || !slices.Equal(got, want) {
		r.Fatalf("%+v (%s)\nfinds %v\nwant  %v", q, node, got, want)
	}
	var paged []string
	for offset := 0; offset < page.Total; offset += 2 {
		part := q
		part.Limit, part.Offset = 2, offset
		paged = append(paged, ids(find(r, x, part))...)
	}
	if whole := ids(page); !slices.Equal(paged, whole) && len(whole) > 0 {
		r.Fatalf("%+v: pages %v, whole %v", q, paged, whole)
	}
}

// inOrder checks scores: exact ones first, then from best to worst, and equal ones by
// space and id.
func inOrder(r *rapid.T, q search.Query, page search.Page) {
	exact := func(h search.Hit) int {
		text := strings.ToLower(strings.Trim(q.Text, `"`))
		switch {
		case h.ID == text:
			return 2
		case h.Name == text || strings.HasSuffix(h.ID, "/"+text):
			return 1
		}
		return 0
	}
	for i, h := range page.Results {
		if h.Score < 0 || h.Score > 1 || exact(h) > 0 && h.Score != 1 {
			r.Fatalf("%+v: score %v of %s", q, h.Score, h.ID)
		}
		if i == 0 {
			continue
		}
		before := page.Results[i-1]
		order := cmp.Or(cmp.Compare(exact(h), exact(before)), cmp.Compare(h.Score, before.Score))
		if order > 0 {
			r.Fatalf("%+v: %s (%v) after %s (%v)", q, h.ID, h.Score, before.ID, before.Score)
		}
	}
}
