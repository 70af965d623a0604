package handler

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// chainOf registers threads that resume each other, all of which have ended.
func chainOf(t *testing.T, p *Project, length int) (ids []thread.ID) {
	t.Helper()
	all := storetest.As(p.Control.Threads.Store)
	for i := range length {
		now := time.Unix(int64(1_800_000_000+i), 0)
		n := store.NewThread{Kind: thread.KindDirective, Directive: "greet", Name: "greet", Model: "scripted/scripted-fast", Now: now}
		if i > 0 {
			n.ContinuationOf = ids[i-1]
		}
		rec, _, err := all.Register(t.Context(), n, func(thread.ID) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, rec.ThreadID)
		if i > 0 {
			if err := all.Link(t.Context(), ids[i-1], rec.ThreadID, now); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := all.Apply(t.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: os.Getpid(), Host: "here"}, now)); err != nil {
			t.Fatal(err)
		}
		change, err := store.Finished(rec.ThreadID, thread.Outcome{State: thread.Completed, Result: strings.Repeat("done ", i)}, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all.Apply(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// However long an answer is, its model is shown 12 000 bytes of it at most, and the
// calls that it names read all of the rest.
func TestAnswersAreReadInFull(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newFolder(t, newFiles(".ai/knowledge/long.md", "```yaml\nname: long\ntitle: Long\n```\n\n"+strings.Repeat("Wörter über \"alles\".\n", 15_000)))
	texts := make([]string, 120)
	for i := range texts {
		texts[i] = strings.Repeat(fmt.Sprintf("%d ä \"日\"\n", i), 20+i)
	}
	ids, chain := ended(t, p, texts...), chainOf(t, p, 60)
	c := connectTo(t, p)
	type args = map[string]any
	slips := []thread.ID{ids[0]}
	for i := range 400 {
		slips = append(slips, thread.ID(fmt.Sprintf("greet-slip-%d", i)))
	}
	for _, call := range []struct {
		tool string
		args args
	}{
		{"aggregate_results", args{"thread_ids": ids}},
		{"wait_threads", args{"thread_ids": ids}},
		{"wait_threads", args{"thread_ids": slips, "mode": "any"}},
		{"cancel_thread", args{"thread_ids": ids[:100]}},
		{"get_chain", args{"thread_id": chain[3]}},
		{"rye_execute", operate("get_chain", args{"thread_id": chain[3]})},
		{"rye_execute", args{"item_id": "greet", "parameters": args{"name": strings.Repeat("Ada ", 10_000)}, "thread": "fork", "dry_run": true}},
		{"rye_execute", args{"item_id": "greet", "parameters": args{"name": strings.Repeat("Ada ", 10_000)}}},
		{"rye_execute", args{"item_id": "facts", "parameters": args{"no": 1}}},
		{"rye_execute", args{"item_id": strings.Repeat("é", 30_000)}},
		{"get_status", args{"thread_id": strings.Repeat("x", 30_000)}},
	} {
		r := c.Call(call.tool, call.args)
		if r.Err != nil || len(r.JSON) > server.DefaultRoom {
			t.Errorf("%s: %d bytes, %v", call.tool, len(r.JSON), r.Err)
			continue
		}
		call.args["max_bytes"] = 1_000_000
		sameWhenRead(t, c, call.tool, r.JSON, c.Call(call.tool, call.args).JSON)
	}
	long := readAll(t, c, "rye_fetch item_id=long")
	if n := strings.Count(long, "Wörter über \"alles\".\n"); n != 15_000 {
		t.Errorf("%d lines of a long item", n)
	}
}

// sameWhenRead fails unless the calls that a short answer names lead to what a long one
// says.
func sameWhenRead(t *testing.T, c *servertest.Client, name string, short, long json.RawMessage) {
	t.Helper()
	var note struct {
		Cut struct {
			Read  string
			Lists []struct {
				At, Read  string
				Shown, Of int
			}
		}
	}
	var shown, whole map[string]any
	for raw, into := range map[*json.RawMessage]any{&short: &note, &long: &whole} {
		if err := json.Unmarshal(*raw, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := json.Unmarshal(short, &shown); err != nil || whole["cut"] != nil {
		t.Fatalf("%s: %v; asked for a megabyte, it is cut: %.300s", name, err, long)
	}
	delete(shown, "cut")
	for _, answer := range []map[string]any{shown, whole} {
		delete(answer, "elapsed_seconds")
	}
	for _, cut := range note.Cut.Lists {
		var list any
		if err := json.Unmarshal([]byte(readAll(t, c, cut.Read)), &list); err != nil || !reflect.DeepEqual(list, memberAt(whole, cut.At)) {
			t.Errorf("%s: %s: another list is read, %v", name, cut.At, err)
		}
		if n := reflect.ValueOf(list).Len(); n != cut.Of || cut.Shown >= n {
			t.Errorf("%s: %s says %d of %d, there are %d", name, cut.At, cut.Shown, cut.Of, n)
		}
	}
	partOf(t, func(place, text string) any {
		m := cutText.FindStringSubmatch(text)
		if m == nil {
			return text
		}
		if strings.HasPrefix(m[2], "part=") {
			m[2] = strings.Replace(note.Cut.Read, "<its id> part=<part>", strings.Split(place, ".")[2]+" "+m[2], 1)
		}
		rest := readAll(t, c, m[2])
		if !strings.Contains(m[2], "part=outputs") {
			return m[1] + rest
		}
		var outputs map[string]any
		if err := json.Unmarshal([]byte(rest), &outputs); err != nil {
			t.Errorf("%s%s: %v", name, place, err)
		}
		return outputs[place[strings.LastIndexByte(place, '.')+1:]]
	}, name, shown, whole)
}

func memberAt(value any, place string) any {
	for name := range strings.SplitSeq(place, ".") {
		members, _ := value.(map[string]any)
		value = members[name]
	}
	return value
}

// partOf fails unless what is shown is a part of a whole, once its texts are read.
func partOf(t *testing.T, read func(place, text string) any, place string, shown, whole any) {
	t.Helper()
	switch shown := shown.(type) {
	case map[string]any:
		members, _ := whole.(map[string]any)
		for name, value := range shown {
			partOf(t, read, place+"."+name, value, members[name])
		}
	case []any:
		elements, _ := whole.([]any)
		for i, value := range shown {
			partOf(t, read, fmt.Sprint(place, ".", i), value, elements[i])
		}
	case string:
		if got := read(place, shown); !reflect.DeepEqual(got, whole) {
			t.Errorf("%s is read as %.100q, want %.100q", place, got, whole)
		}
	default:
		if !reflect.DeepEqual(shown, whole) {
			t.Errorf("%s is %v, want %v", place, shown, whole)
		}
	}
}

var (
	aTime    = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)"`)
	aElapsed = regexp.MustCompile(`"(elapsed_seconds|duration_ms|age_seconds)":[0-9.e+-]+`)
)

// TestTypicalAnswers keeps what models read every day in testdata/answers.md, with its
// length: each byte is in their context.
func TestTypicalAnswers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newFolder(t, newFiles())
	ids, chain := endedAt(t, p, time.Unix(1_700_000_000, 0), "Hello Ada.", "Hello Bob.", "Hello Eve."), chainOf(t, p, 2)
	c := connectTo(t, p)
	type args = map[string]any
	var b strings.Builder
	b.WriteString("Answers that models read every day, with their bytes; `go test ./mcp/handler -update` writes this file.\n")
	for _, call := range []struct {
		title, tool string
		args        args
	}{
		{"rye_execute of a directive, inline", "rye_execute", args{"item_id": "greet", "parameters": args{"name": "Ada"}}},
		{"rye_execute of a tool", "rye_execute", args{"item_id": "rye/file-system/read", "parameters": args{"path": "note.txt"}}},
		{"rye_execute, a plan", "rye_execute", args{"item_id": "greet", "parameters": args{"name": "Ada"}, "dry_run": true, "thread": "fork"}},
		{"rye_search, one hit", "rye_search", args{"query": "greets"}},
		{"rye_fetch of a directive", "rye_fetch", args{"item_id": "greet"}},
		{"wait_threads, one", "wait_threads", args{"thread_ids": ids[:1]}},
		{"wait_threads, three", "wait_threads", args{"thread_ids": ids}},
		{"aggregate_results, three", "aggregate_results", args{"thread_ids": ids}},
		{"get_status", "get_status", args{"thread_id": ids[0]}},
		{"list_threads, three", "list_threads", args{"query": "greet-17"}},
		{"get_chain, two", "get_chain", args{"thread_id": chain[0]}},
		{"read_transcript, a result", "read_transcript", args{"thread_id": ids[0], "part": "result"}},
		{"cancel_thread", "cancel_thread", args{"thread_id": ids[0]}},
		{"a missing argument", "wait_threads", args{}},
		{"an unknown argument", "rye_execute", args{"item_id": "greet", "prompt": "Ada"}},
		{"a missing input", "rye_execute", args{"item_id": "greet"}},
		{"an unknown item", "rye_execute", args{"item_id": "gret"}},
		{"an unknown thread", "get_status", args{"thread_id": ids[0] + "x"}},
	} {
		answer := string(c.Call(call.tool, call.args).JSON)
		answer = strings.ReplaceAll(answer, p.Path, "/home/ada/project")
		answer = aTime.ReplaceAllString(answer, `"2026-11-22T12:00:00Z"`)
		answer = aElapsed.ReplaceAllString(answer, `"$1":1`)
		fmt.Fprintf(&b, "\n%s: %d\n\n    %s\n", call.title, len(answer), strings.TrimSpace(answer))
	}
	golden(t, "answers.md", b.String())
}

// What a page of a tool or of hits leaves out begins where the answer says, whatever the
// room for it: no page is cut without next_offset knowing it.
func TestPagesAreReadInFull(t *testing.T) {
	t.Parallel()
	const all = 400
	var lines strings.Builder
	for i := range all {
		fmt.Fprintf(&lines, "line %d of \"many\" äöü %s\n", i+1, strings.Repeat("x", i%90))
	}
	c := connectTo(t, newFolder(t, map[string]string{"long.txt": lines.String()}))
	for _, room := range []int{0, 3_000} {
		seen := 0
		for offset := 1; offset > 0; {
			var page struct {
				Data struct {
					Content    string
					NextOffset int `json:"next_offset"`
				}
			}
			readPage(t, c, "rye_execute", room, map[string]any{
				"item_id": "rye/file-system/read", "parameters": map[string]any{"path": "long.txt", "offset": offset},
			}, &page)
			seen += strings.Count(page.Data.Content, "\n")
			offset = page.Data.NextOffset
		}
		if seen != all {
			t.Errorf("max_bytes %d shows %d lines of %d", room, seen, all)
		}
		for _, tool := range []string{"rye_search", "rye_fetch"} {
			seen, total := 0, 0
			for more, offset := true, 0; more; more = offset > 0 {
				var page struct {
					Results    []any
					Total      int
					NextOffset int `json:"next_offset"`
				}
				readPage(t, c, tool, room, map[string]any{"query": "*", "limit": 100, "offset": offset}, &page)
				seen, total, offset = seen+len(page.Results), page.Total, page.NextOffset
			}
			if seen != total || total < 20 {
				t.Errorf("%s, max_bytes %d: %d hits of %d", tool, room, seen, total)
			}
		}
	}
}

// readPage calls a tool that pages, and fails when a page was cut.
func readPage(t *testing.T, c *servertest.Client, tool string, room int, args map[string]any, page any) {
	t.Helper()
	if room > 0 {
		args["max_bytes"] = room
	}
	r := c.Call(tool, args)
	if strings.Contains(string(r.JSON[:min(len(r.JSON), 100)]), `"cut":`) {
		t.Fatalf("%s %v is cut: %s", tool, args, r.JSON)
	}
	if err := json.Unmarshal(r.JSON, page); err != nil {
		t.Fatal(err)
	}
}
