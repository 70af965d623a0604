package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// aThread is a result whose members named result are what threads left.
type aThread struct{}

func (aThread) WholeOf(place []string) (tool.Whole, bool) {
	if place[len(place)-1] != "result" {
		return tool.Whole{}, false
	}
	return tool.Whole{ThreadID: thread.ID(place[len(place)-2]), Part: tool.PartResult, Verbatim: true}, true
}

func newFitter(room int, tools ...string) *fitter {
	offers := func(name string) bool { return strings.Contains(strings.Join(tools, " ")+" ", name+" ") }
	return &fitter{room: room, result: aThread{}, kept: &kept{}, calls: calls{offers}}
}

// asJSON is v as a handler's result is written.
func asJSON(t interface{ Fatal(...any) }, v any) []byte {
	data, err := encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(data)
}

// Twenty long results share the room; every id and state is there, and each cut
// text says how to read on from where it was cut.
func TestFitSharesTheRoom(t *testing.T) {
	t.Parallel()
	type result struct {
		Status string `json:"status"`
		Result string `json:"result"`
	}
	answer := struct {
		Success bool              `json:"success"`
		Results map[string]result `json:"results"`
	}{true, map[string]result{}}
	whole := map[string]string{}
	for i := range 20 {
		id := fmt.Sprintf("greet-%02d", i)
		whole[id] = strings.Repeat("ä\"b\n", 100*(i+1))
		answer.Results[id] = result{"completed", whole[id]}
	}
	data := asJSON(t, answer)
	got := newFitter(DefaultRoom, toolFetch, toolRead).fit(data)
	if len(got) > DefaultRoom || len(got) < DefaultRoom*3/4 {
		t.Errorf("%d bytes of %d", len(got), DefaultRoom)
	}
	shown := answer
	shown.Results = map[string]result{}
	if err := json.Unmarshal(got, &shown); err != nil || len(shown.Results) != 20 {
		t.Fatalf("%d results, %v", len(shown.Results), err)
	}
	mark := regexp.MustCompile(`(?s)^(.*)… \[(\d+) more bytes: read_transcript thread_id=(\S+) part=result cursor=(\d+)\]$`)
	least, most := DefaultRoom, 0
	for id, r := range shown.Results {
		if r.Result == whole[id] {
			continue
		}
		m := mark.FindStringSubmatch(r.Result)
		if m == nil || m[3] != id || m[1] != whole[id][:len(m[1])] || m[4] != strconv.Itoa(len(m[1])) || m[2] != strconv.Itoa(len(whole[id])-len(m[1])) {
			t.Errorf("%s: %s", id, r.Result)
			continue
		}
		least, most = min(least, len(m[1])), max(most, len(m[1]))
	}
	if most-least > 10 {
		t.Errorf("texts were cut at %d to %d bytes", least, most)
	}
	if !bytes.HasPrefix(got, []byte(`{"success":true,"cut":{"whole_bytes":`+strconv.Itoa(len(data))+`,"texts":`)) {
		t.Errorf("the answer begins %s", got[:200])
	}
}

// A text without another home is kept, and can be read to the byte.
func TestFitKeeps(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("é日\x01\\", 5000)
	many := make([]map[string]string, 900)
	for i := range many {
		many[i] = map[string]string{"id": fmt.Sprint(i), "detail": "nothing is wrong here"}
	}
	f := newFitter(DefaultRoom, toolFetch)
	got := f.fit(asJSON(t, map[string]any{"a_success": true, "data": map[string]any{"text": text}, "list": many}))
	var shown struct {
		Cut  cutNote
		Data struct{ Text string }
		List []map[string]string
	}
	if err := json.Unmarshal(got, &shown); err != nil || len(got) > DefaultRoom || len(shown.Cut.Lists) != 1 {
		t.Fatalf("%d bytes, %v: %s", len(got), err, got)
	}
	m := regexp.MustCompile(`^(.*)… \[\d+ more bytes: rye_fetch item_id=(answer:[0-9a-f]{32}) offset=(\d+)\]$`).FindStringSubmatch(shown.Data.Text)
	if m == nil || f.kept.texts[m[2]] != text || !strings.HasPrefix(text, m[1]) || m[3] != strconv.Itoa(len(m[1])) {
		t.Errorf("text: %q", shown.Data.Text)
	}
	cut := shown.Cut.Lists[0]
	id := strings.TrimPrefix(cut.Read, "rye_fetch item_id=")
	if cut.At != "list" || cut.Of != 900 || cut.Shown != len(shown.List) || cut.Shown < 2 || f.kept.texts[id] != string(asJSON(t, many)) {
		t.Errorf("list: %+v, %d shown", cut, len(shown.List))
	}
}

// The calls that are named are calls that the client was offered.
func TestFitNamesOfferedCalls(t *testing.T) {
	t.Parallel()
	data := asJSON(t, map[string]any{"greet-1": map[string]string{"result": strings.Repeat("x", 50_000)}, "success": true})
	for offered, want := range map[string]string{
		toolRead:  "read_transcript thread_id=greet-1 part=result cursor=",
		toolFetch: "rye_fetch item_id=answer:", toolExecute: "parameters={operation=read_transcript thread_id=greet-1 part=result cursor=",
		"sign": "a larger max_bytes",
	} {
		if got := newFitter(DefaultRoom, offered).fit(data); !bytes.Contains(got, []byte(want)) {
			t.Errorf("with %s: %s", offered, got[len(got)-200:])
		}
	}
}

// drawJSON draws a value such as a tool may return.
func drawJSON(t *rapid.T, depth int) any {
	switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case kind == 0 && depth > 0:
		list := make([]any, rapid.IntRange(0, 15).Draw(t, "elements"))
		for i := range list {
			list[i] = drawJSON(t, depth-1)
		}
		return list
	case kind == 1 && depth > 0:
		m := map[string]any{}
		for range rapid.IntRange(0, 15).Draw(t, "members") {
			key := rapid.StringN(1, 8, -1).Draw(t, "key")
			m[strings.Repeat(key, rapid.SampledFrom([]int{1, 1, 1, 1, 5000}).Draw(t, "key times"))] = drawJSON(t, depth-1)
		}
		return m
	case kind == 2:
		return rapid.Float64Range(-1e9, 1e9).Draw(t, "number")
	case kind == 3:
		return nil
	default:
		return strings.Repeat(rapid.StringN(0, 20, -1).Draw(t, "text"), rapid.SampledFrom([]int{1, 3, 100, 1500}).Draw(t, "times"))
	}
}

// An answer to anything that a tool returns has the room of the call and is valid
// JSON and UTF-8, with all its top members; one that fits is left as it is.
func TestFitAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		answer := map[string]any{"success": true}
		for i := range rapid.IntRange(1, 6).Draw(t, "members") {
			answer[fmt.Sprint("m", i)] = drawJSON(t, 3)
		}
		data := asJSON(t, answer)
		room := rapid.SampledFrom([]int{3000, DefaultRoom, 40_000}).Draw(t, "room")
		if top, err := parseTree(data); err != nil || top.size() != len(top.JSON()) {
			t.Fatalf("size %d of %d bytes, %v", top.size(), len(top.JSON()), err)
		}
		f := newFitter(room, toolFetch)
		got := f.fit(data)
		if len(data) <= room {
			if !bytes.Equal(got, data) {
				t.Fatalf("changed without need: %s", got)
			}
			return
		}
		var shown map[string]any
		if err := json.Unmarshal(got, &shown); err != nil || !utf8.Valid(got) {
			t.Fatalf("%v: %s", err, got)
		}
		if len(got) > room {
			t.Fatalf("%d bytes of %d: %s", len(got), room, got)
		}
		for name := range answer {
			if _, ok := shown[name]; !ok {
				t.Fatalf("%s is missing", name)
			}
		}
		var whole map[string]any
		if err := json.Unmarshal(data, &whole); err != nil {
			t.Fatal(err)
		}
		r := readBack{t, f}
		r.lists(shown)
		delete(shown, "cut")
		if r.same("", whole, shown); len(f.cut.Lists) == 0 && f.cut.Texts == 0 {
			t.Fatalf("nothing says that it was cut: %s", got)
		}
	})
}

// readBack follows the calls that an answer names, and fails unless they lead to all of
// what was cut.
type readBack struct {
	*rapid.T
	f *fitter
}

// lists puts the lists that were cut in place of what is shown of them, the outer last.
func (r readBack) lists(shown map[string]any) {
	for _, cut := range r.f.cut.Lists {
		text, ok := r.f.kept.texts[strings.TrimPrefix(cut.Read, "rye_fetch item_id=")]
		var list any
		if err := json.Unmarshal([]byte(text), &list); err != nil || !ok {
			r.Fatalf("%s: %q cannot be read: %v", cut.At, cut.Read, err)
		}
		if n := reflect.ValueOf(list).Len(); n != cut.Of {
			r.Fatalf("%s has %d of %d", cut.At, n, cut.Of)
		}
		if top := slices.IndexFunc(r.f.top.kids, func(n *node) bool { return n == cut.list }); top >= 0 {
			shown[r.f.top.keys[top]] = list
		}
	}
}

var cutMark = regexp.MustCompile(`(?s)^(.*)… \[(\d+) more bytes: rye_fetch item_id=(answer:[0-9a-f]{32})(?: offset=(\d+))?\]$`)

// same fails unless a value is what is shown of it, or is read by the call named there.
// Members of lists that are not shown are in a list that is named.
func (r readBack) same(place string, whole, shown any) {
	if text, ok := shown.(string); ok && !reflect.DeepEqual(whole, shown) {
		m := cutMark.FindStringSubmatch(text)
		if m == nil {
			r.Fatalf("%s: %q is shown as %q", place, whole, text)
		}
		rest := r.f.kept.texts[m[3]]
		from, _ := strconv.Atoi(m[4])
		all := m[1] + rest[from:]
		if was, ok := whole.(string); ok {
			if all != was {
				r.Fatalf("%s: another text is read: %q", place, all)
			}
			return
		}
		var back any
		if err := json.Unmarshal([]byte(all), &back); err != nil || !reflect.DeepEqual(back, whole) {
			r.Fatalf("%s: %v is read as %q", place, whole, all)
		}
		return
	}
	switch shown := shown.(type) {
	case map[string]any:
		for name, value := range shown {
			r.same(place+"."+name, whole.(map[string]any)[name], value)
		}
	case []any:
		for i, value := range shown {
			r.same(fmt.Sprint(place, ".", i), whole.([]any)[i], value)
		}
	default:
		if !reflect.DeepEqual(whole, shown) {
			r.Fatalf("%s: %v is shown as %v", place, whole, shown)
		}
	}
}

func TestKeptIsBounded(t *testing.T) {
	t.Parallel()
	var k kept
	text := strings.Repeat("x", 1<<20)
	var ids []string
	for i := range 80 {
		ids = append(ids, k.put(fmt.Sprint(i)+text))
	}
	if k.size > maxKept || len(k.texts) != len(k.order) || k.texts[ids[0]] != "" || k.texts[ids[79]] == "" {
		t.Errorf("%d bytes in %d texts", k.size, len(k.texts))
	}
	if size := k.size; k.put("79"+text) != ids[79] || k.size != size {
		t.Error("the same text is kept twice")
	}
}
