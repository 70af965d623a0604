package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var labelTests = []test{
	{"name and metadata of one thread", labelOne},
	{"what is refused changes nothing", labelRefuses},
	{"a chain is labelled alike", labelChain},
	{"threads by their metadata", labelFilters},
	{"a thread begins with metadata", labelRegister},
}

func (h *harness) label(id thread.ID, l store.LabelChange) thread.Record {
	h.Helper()
	rec, err := h.Label(h.ctx, id, l, h.now)
	h.noError(err)
	return rec
}

func patch(text string) store.LabelChange {
	return store.LabelChange{Metadata: json.RawMessage(text)}
}

func labelOne(h *harness) {
	id, other := h.running("d", ""), h.running("d", "")
	before := h.get(id)
	later := h.now.Add(time.Hour)
	rec, err := h.Label(h.ctx, id, store.LabelChange{Name: " Fix it ", Metadata: json.RawMessage(`{"team":"a","n":1}`)}, later)
	h.noError(err)
	want := before
	want.Name, want.Metadata, want.UpdatedAt = "Fix it", json.RawMessage(`{"n":1,"team":"a"}`), later
	if got := h.get(id); fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(rec) != fmt.Sprint(want) {
		h.Errorf("labelled\n%+v, answered\n%+v, want\n%+v", got, rec, want)
	}
	if rec := h.label(id, patch(`{"n":null}`)); string(rec.Metadata) != `{"team":"a"}` || rec.Name != "Fix it" {
		h.Errorf("patched: %s %s", rec.Name, rec.Metadata)
	}
	if rec := h.label(id, store.LabelChange{Name: "Done"}); string(rec.Metadata) != `{"team":"a"}` || rec.Name != "Done" {
		h.Errorf("renamed: %s %s", rec.Name, rec.Metadata)
	}
	h.apply(h.finished(id, thread.Completed))
	if rec := h.label(id, store.LabelChange{Name: "Ended"}); rec.Name != "Ended" || rec.Status != thread.Completed {
		h.Errorf("renamed after its end: %+v", rec)
	}
	if rec := h.get(other); rec.Name != "" || string(rec.Metadata) != "{}" {
		h.Errorf("another thread: %+v", rec)
	}
}

func labelRefuses(h *harness) {
	id := h.running("d", "")
	h.label(id, store.LabelChange{Name: "n", Metadata: json.RawMessage(`{"a":1}`)})
	before := h.get(id)
	for _, l := range []store.LabelChange{
		{Name: "  "}, {Name: strings.Repeat("x", 10_000)}, {Name: "a\x1b[2J"}, patch(`[]`), patch(`null`), patch(`{"forked_from":"x"}`),
		{Name: "fine", Metadata: json.RawMessage(`{"b":"` + strings.Repeat("x", thread.MaxMetadataBytes) + `"}`)},
	} {
		if _, err := h.Label(h.ctx, id, l, h.now); !errors.Is(err, thread.ErrBadLabel) {
			h.Errorf("%.40q %.40s: %v", l.Name, l.Metadata, err)
		}
	}
	if _, err := h.Label(h.ctx, "d-999", store.LabelChange{Name: "x"}, h.now); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("an unknown thread: %v", err)
	}
	if after := h.get(id); fmt.Sprint(after) != fmt.Sprint(before) {
		h.Errorf("after what was refused\n%+v, before\n%+v", after, before)
	}
}

// labelChain names one member of a chain after the other: all have the name, also one
// that continues it later, and each keeps what is its alone.
func labelChain(h *harness) {
	n := h.newThread("d", "")
	n.Name, n.Metadata = "first", json.RawMessage(`{"forked_from":"elsewhere","team":"a"}`)
	rec, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	chain := []thread.ID{rec.ThreadID}
	for len(chain) < 3 {
		last := chain[len(chain)-1]
		h.apply(store.Claimed(last, thread.Process{PID: 4711, Host: "host"}, h.now))
		h.apply(h.finished(last, thread.Completed))
		next := h.newThread("d", "")
		next.Name, next.Metadata, next.ContinuationOf = "what its caller says", json.RawMessage(`{"x":1}`), last
		rec, _, err := h.Register(h.ctx, next, claimNothing)
		h.noError(err)
		if rec.Name != h.get(last).Name || string(rec.Metadata) != `{"team":"a"}` {
			h.Errorf("%s begins as %q with %s", rec.ThreadID, rec.Name, rec.Metadata)
		}
		h.noError(h.Link(h.ctx, last, rec.ThreadID, h.now))
		chain = append(chain, rec.ThreadID)
	}
	stranger := h.register("d", "")
	for i, id := range chain {
		name := fmt.Sprint("name ", i)
		h.label(id, store.LabelChange{Name: name, Metadata: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
		for at, member := range chain {
			want := fmt.Sprintf(`{"n":%d,"team":"a"}`, i)
			if at == 0 {
				want = fmt.Sprintf(`{"forked_from":"elsewhere","n":%d,"team":"a"}`, i)
			}
			if rec := h.get(member); rec.Name != name || string(rec.Metadata) != want {
				h.Errorf("member %d after the label of member %d: %q with %s", at, i, rec.Name, rec.Metadata)
			}
		}
	}
	if rec := h.get(stranger); rec.Name != "" {
		h.Errorf("a thread of no chain is called %q", rec.Name)
	}
}

func labelFilters(h *harness) {
	made := map[string]thread.ID{}
	for i, text := range []string{
		`{}`, `{"team":"a"}`, `{"team":"b","n":3}`, `{"n":"3"}`, `{"n":3.5,"ok":true}`, `{"o":{"p":{"q":"x"},"r":1},"team":"a"}`,
		`{"list":[1,{"b":1,"a":"<"}]}`, `{"a.b":"dot","it's":"odd","ä":"ö"}`, `{"o":{}}`, `{"forked_from":"t-1"}`, `{"forked_from":"t-1","team":"a"}`,
	} {
		n := h.newThread("d", "")
		n.Metadata, n.Now = json.RawMessage(text), h.now.Add(time.Duration(i)*time.Millisecond)
		rec, _, err := h.Register(h.ctx, n, claimNothing)
		h.noError(err)
		made[text] = rec.ThreadID
	}
	for asked, want := range map[string]int{
		`{"team":"a"}`: 3, `{"team":"a","o":{"r":1}}`: 1, `{"team":null}`: 7, `{"n":"3"}`: 2, `{"n":3}`: 1, `{"n":3.0}`: 1, `{"n":3.5}`: 1, `{"n":"3.5"}`: 1,
		`{"ok":true}`: 1, `{"ok":false}`: 0, `{"ok":"true"}`: 1, `{"o":{"p":{"q":"x"}}}`: 1, `{"o":{}}`: 2, `{"o":{"p":"x"}}`: 0,
		`{"list":[1,{"a":"<","b":1}]}`: 1, `{"list":[1]}`: 0, `{"a.b":"dot"}`: 1, `{"a":{"b":"dot"}}`: 0, `{"it's":"odd"}`: 1, `{"ä":"ö"}`: 1,
		`{"forked_from":"t-1"}`: 2, `{"forked_from":"t-1","team":"a"}`: 1, `{"forked_from":"t-2"}`: 0, `{"forked_from":null}`: 9, `{"x":"' OR 1=1 --"}`: 0, `{}`: 11,
	} {
		for _, by := range store.SortKeys() {
			rows, _ := h.walk(store.Filter{Metadata: json.RawMessage(asked), Sort: store.Sort{By: by}, Limit: 2})
			if len(rows) != want {
				h.Errorf("%s by %q: %d rows, want %d", asked, by, len(rows), want)
			}
		}
	}
	many := map[string]any{}
	for i := range 30 {
		many[fmt.Sprint("k", i)] = i
	}
	long, err := json.Marshal(many)
	h.noError(err)
	for _, asked := range []string{`[]`, `{"a\"b":1}`, `{"` + "\x00" + `":1}`, string(long)} {
		if _, _, err := h.List(h.ctx, store.Filter{Metadata: json.RawMessage(asked)}); !errors.Is(err, thread.ErrBadLabel) {
			h.Errorf("%.40s: %v", asked, err)
		}
	}
}

func labelRegister(h *harness) {
	n := h.newThread("d", "")
	n.Metadata = json.RawMessage("{ \"b\" : 1,\n\"a\":\"<é>\" }")
	rec, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	if string(rec.Metadata) != `{"a":"<é>","b":1}` {
		h.Errorf("begins with %s", rec.Metadata)
	}
	n.Metadata = json.RawMessage(`[]`)
	if _, _, err := h.Register(h.ctx, n, claimNothing); !errors.Is(err, thread.ErrBadLabel) {
		h.Errorf("begins with a list: %v", err)
	}
	if rows, _ := h.walk(store.Filter{}); len(rows) != 1 {
		h.Errorf("there are %s", ids(rows))
	}
}
