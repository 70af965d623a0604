package handler

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ended registers threads that have ended with results.
func ended(t *testing.T, p *Project, results ...string) (ids []thread.ID) {
	t.Helper()
	return endedAt(t, p, time.Now(), results...)
}

func endedAt(t *testing.T, p *Project, now time.Time, results ...string) (ids []thread.ID) {
	t.Helper()
	for _, result := range results {
		rec, _, err := store.Register(t.Context(), p.Control.Threads.Store, store.NewThread{
			Kind: thread.KindDirective, Directive: "greet", Name: "greet", Model: "scripted/scripted-fast", Now: now,
		}, func(thread.ID) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		_, err = storetest.As(p.Control.Threads.Store).Apply(t.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: os.Getpid(), Host: "here"}, now))
		if err != nil {
			t.Fatal(err)
		}
		change, err := store.Finished(rec.ThreadID, thread.Outcome{
			State: thread.Completed, Result: result, Outputs: map[string]any{"text": result},
		}, nil, now)
		if err == nil {
			_, err = storetest.As(p.Control.Threads.Store).Apply(t.Context(), change)
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, rec.ThreadID)
	}
	return ids
}

// readAll makes the call that a cut text names, and those that its answers name,
// until there is no more.
func readAll(t *testing.T, c *servertest.Client, call string) string {
	t.Helper()
	name, args := namedCall(call)
	var all strings.Builder
	for {
		var page struct {
			Content string
			Cursor  string `json:"next_cursor"`
			Offset  int    `json:"next_offset"`
		}
		decode(t, c.Call(name, args), &page)
		all.WriteString(page.Content)
		switch {
		case page.Cursor != "":
			args["cursor"] = page.Cursor
		case page.Offset != 0:
			args["offset"] = page.Offset
		default:
			return all.String()
		}
	}
}

// namedCall is the call that an answer names.
func namedCall(call string) (name string, args map[string]any) {
	name, rest, _ := strings.Cut(call, " ")
	args = map[string]any{}
	for arg := range strings.SplitSeq(rest, " ") {
		key, value, _ := strings.Cut(arg, "=")
		args[key] = value // numbers too: input is forgiving
	}
	return name, args
}

var cutText = regexp.MustCompile(`(?s)^(.*)… \[\d+ more bytes: ([^\]]+)\]$`)

// Long results are no failure: an answer keeps its room, begins with all states,
// and each cut text names the call that reads the rest, to the byte.
func TestLongResultsAreReadable(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newFolder(t, newFiles())
	var texts []string
	for i := range 20 {
		texts = append(texts, strings.Repeat(fmt.Sprintf("%d ä \"日\" \\ 😀\n", i), 200*(i+1)))
	}
	ids := ended(t, p, texts...)
	c := connectTo(t, p)
	for _, call := range []string{"wait_threads", "aggregate_results"} {
		r := c.Call(call, map[string]any{"thread_ids": ids})
		var answer struct {
			Cut     struct{ Read string }
			Results map[thread.ID]struct {
				Status thread.State
				Result string
			}
		}
		decode(t, r, &answer)
		head := string(r.JSON[:strings.Index(string(r.JSON), `"results":`)])
		for i, id := range ids {
			if !strings.Contains(head, fmt.Sprintf("%q:\"completed\"", id)) {
				t.Errorf("%s: the state of %s is not before the texts: %s", call, id, head)
			}
			m := cutText.FindStringSubmatch(answer.Results[id].Result)
			if m == nil {
				t.Fatalf("%s: %s: %s", call, id, answer.Results[id].Result)
			}
			if terse := strings.HasPrefix(m[2], "part="); terse {
				m[2] = strings.Replace(answer.Cut.Read, "<its id> part=<part>", string(id)+" "+m[2], 1)
			}
			if whole := m[1] + readAll(t, c, m[2]); whole != texts[i] {
				t.Errorf("%s: %s: %d bytes of %d are read with %s", call, id, len(whole), len(texts[i]), m[2])
			}
		}
	}
	if r := c.Call("wait_threads", map[string]any{"thread_ids": ids[:1], "max_bytes": 100_000}); strings.Contains(string(r.JSON), "more bytes") {
		t.Errorf("asked for more: %.300s", r.JSON)
	}
	outputs := readAll(t, c, "read_transcript thread_id="+string(ids[3])+" part=outputs")
	var back map[string]string
	if err := json.Unmarshal([]byte(outputs), &back); err != nil || back["text"] != texts[3] {
		t.Errorf("outputs: %v", err)
	}
}

// A tool's long data, and what it returns beside them, are read by the call that
// the answer names.
func TestLongDataIsReadable(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("é日", 200) + "\n"
	files := newFiles("long.txt", strings.Repeat(line, 40))
	files["wide.txt"] = strings.Repeat("é日", 200) // a line that the page below has no room for
	c := connect(t, files)
	var ran struct{ Attachments []struct{ Name, Read string } }
	decode(t, c.Call("rye_execute", map[string]any{"id": "rye/bash", "inputs": `{"command":"cat long.txt"}`}), &ran)
	if len(ran.Attachments) != 1 || readAll(t, c, ran.Attachments[0].Read) != strings.Repeat(line, 40) {
		t.Errorf("attachments: %+v", ran.Attachments)
	}
	var read struct{ Data struct{ Content string } }
	call := map[string]any{"id": "rye/file-system/read", "inputs": map[string]any{"path": "wide.txt"}, "max_bytes": 500}
	decode(t, c.Call("rye_execute", call), &read)
	m := cutText.FindStringSubmatch(read.Data.Content)
	if m == nil {
		t.Fatalf("content: %.300s", read.Data.Content)
	}
	for _, room := range []int{500, 3_000} { // a page is as long as it is asked to be
		name, args := namedCall(ran.Attachments[0].Read)
		args["max_bytes"] = room
		var page struct {
			Content string
			Next    int `json:"next_offset"`
		}
		if decode(t, c.Call(name, args), &page); len(page.Content) > room || len(page.Content) < room/2 || page.Next == 0 {
			t.Errorf("%s with %v: %d bytes, next %d", name, args, len(page.Content), page.Next)
		}
	}
	whole := m[1] + readAll(t, c, m[2])
	call["max_bytes"] = 100_000
	if decode(t, c.Call("rye_execute", call), &read); whole != read.Data.Content {
		t.Errorf("content: %d bytes of %d", len(whole), len(read.Data.Content))
	}
	if r := c.Call("rye_fetch", map[string]any{"item_id": "answer:0123"}); r.Code() != tool.CodeNotFound {
		t.Errorf("what is not kept: %s", r.JSON)
	}
}

// Settings warnings stand in the first answer of a server and in no other, until
// they change.
func TestSettingsWarningsAreToldOnce(t *testing.T) {
	t.Parallel()
	p := newFolder(t, newFiles(".ai/config/agent/agent.yaml", scriptedModel+"colour: red\n"))
	c := connectTo(t, p)
	plan := map[string]any{"item_id": "greet", "parameters": map[string]any{"name": "Ada"}, "thread": "fork", "dry_run": true}
	for i, call := range []struct {
		name, told string
		args       map[string]any
	}{
		{"get_status", "colour", map[string]any{"thread_id": "greet-1"}}, // a failure tells them too
		{"rye_execute", "", plan},
		{"list_threads", "", nil},
		{"rye_execute", "", plan},
	} {
		r := c.Call(call.name, call.args)
		if told := strings.Contains(string(r.JSON), `"settings_warnings":["`); told != (call.told != "") || strings.Contains(string(r.JSON), "colour") != told {
			t.Errorf("answer %d: %s", i, r.JSON)
		}
	}
	writeFiles(t, p.Path, map[string]string{".ai/config/agent/resilience.yaml": "shape: round\n"})
	again := connectTo(t, p)
	if r := again.Call("list_threads", nil); !strings.Contains(string(r.JSON), "colour") || !strings.Contains(string(r.JSON), "shape") {
		t.Errorf("another server: %s", r.JSON)
	}
	r := c.Call("rye_execute", plan)
	if s := string(r.JSON); !strings.Contains(s, `"settings_warnings":["`) || !strings.Contains(s, "shape") || strings.Contains(s, "colour") {
		t.Errorf("after a change: %s", s)
	}
}

// Names and forms that models reach for are taken where they can mean one thing
// only.
func TestForgivingCalls(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newFolder(t, newFiles())
	id := ended(t, p, "done")[0]
	c := connectTo(t, p)
	type args = map[string]any
	for _, call := range []struct {
		tool string
		args args
		want string
	}{
		{"rye_execute", args{"id": "greet", "inputs": `{"name":"Ada"}`}, `"body":"Greet Ada."`},
		{"rye_execute", args{"directive": "greet", "params": args{"name": "Ada"}, "thread": "inline"}, `"body":"Greet Ada."`},
		{"rye_execute", args{"directive": "greet", "inputs": args{"name": "Ada"}, "dry_run": "true", "limits": args{"spend": "0.01"}, "timeout": "5"}, `"worst_case_cost":0.01`},
		{"rye_execute", args{"tool": "rye/agent/threads/orchestrator", "parameters": args{"operation": "get_status", "id": id}}, `"status":"completed"`},
		{"rye_fetch", args{"knowledge": "facts"}, `"item_type":"knowledge"`},
		{"rye_search", args{"text": "greet", "limit": "3"}, `"limit":3`},
		{"wait_threads", args{"id": id, "wait_seconds": "1"}, `"result":"done"`},
		{"wait_threads", args{"thread_ids": `["` + string(id) + `"]`}, `"result":"done"`},
		{"aggregate_results", args{"ids": id}, `"result":"done"`},
		{"get_status", args{"id": id, "project_path": nil}, `"status":"completed"`},
		{"get_status", args{"thread_ids": []any{id}}, `"status":"completed"`},
		{"wait_threads", args{"thread_ids": id, "mode": "ANY"}, `"mode":"any"`},
		{"cancel_thread", args{"thread_id": id}, `"how":"already_ended"`},
		{"cancel_thread", args{"thread_ids": []any{id, string(id) + "x"}}, `"status":"not_found","spend":0,"how":"","nearest_ids":["` + string(id) + `"]`},
		{"rye_search", args{"query": "greet", "type": "directive"}, `"scope":"directive"`},
		{"rye_fetch", args{"id": "facts", "type": "knowledge"}, `"item_type":"knowledge"`},
		{"rye_execute", args{"id": "greet", "inputs": args{"name": "Ada"}, "thread": "FORK", "dry_run": true}, `"plan":`},
		{"read_transcript", args{"thread_id": id, "part": "Result", "offset": 2}, `"content":"ne"`},
		{"list_threads", args{"status": "Completed", "limit": []any{1}}, `"count":1`},
		{"list_threads", args{"state": "completed", "query": "greet", "limit": "10"}, `"count":1`},
		{"chain_search", args{"id": id, "text": "x", "limit": 3}, `"count":0`},
	} {
		if r := c.Call(call.tool, call.args); r.IsError || !strings.Contains(string(r.JSON), call.want) {
			t.Errorf("%s %v: %s", call.tool, call.args, r.JSON)
		}
	}
	for _, call := range []struct {
		tool string
		args args
		want string
	}{
		{"rye_execute", args{"directive": "facts", "item_type": "knowledge"}, `is \"directive\", which is given as \"knowledge\"`},
		{"rye_execute", args{"directive": "facts"}, `no directive`},
		{"rye_execute", args{"item_id": "greet", "id": "facts"}, `mean the same and are both given`},
		{"rye_execute", args{}, `missing property \"item_id\"`},
		{"rye_execute", operate("wait_thread", args{"thread_ids": id}), `Did you mean wait_threads?`},
		{"rye_execute", operate("", nil), `"valid_operations":["wait_threads"`},
		{"get_status", args{"thred_id": id}, `did you mean \"thread_id\"`},
		{"wait_threads", args{"thread_ids": 5}, `not_found`},
		{"wait_threads", args{"thread_ids": id, "timeout": "soon"}, `\"timeout\" (wait_seconds) must be number, got string`},
	} {
		r := c.Call(call.tool, call.args)
		if !r.IsError || !strings.Contains(string(r.JSON), call.want) || len(r.JSON) > 1000 {
			t.Errorf("%s %v: %s", call.tool, call.args, r.JSON)
		}
	}
}

// rye_execute resumes a thread as resume_thread does.
func TestExecuteResumes(t *testing.T) {
	t.Parallel()
	p := newFolder(t, newFiles())
	id := ended(t, p, "done")[0]
	c := connectTo(t, p)
	type args = map[string]any
	same := c.Call("resume_thread", args{"thread_id": id, "message": "Go on."})
	if r := c.Call("rye_execute", args{"resume_thread_id": id, "inputs": args{"message": "Go on."}}); string(r.JSON) != string(same.JSON) {
		t.Errorf("got %s, want %s", r.JSON, same.JSON)
	}
	for want, a := range map[string]args{
		`runs greet and not facts`:  {"resume_thread_id": id, "item_id": "facts", "parameters": args{"message": "Go on."}},
		`missing property`:          {"resume_thread_id": id},
		`unknown property \"mesage`: {"resume_thread_id": id, "parameters": args{"mesage": "Go on."}},
		`resumed at once`:           {"resume_thread_id": id, "parameters": args{"message": "Go on."}, "dry_run": true},
		`no such thread`:            {"resume_thread_id": "greet-7", "parameters": args{"message": "Go on."}},
	} {
		if r := c.Call("rye_execute", a); !r.IsError || !strings.Contains(string(r.JSON), want) {
			t.Errorf("%v: %s, want %s", a, r.JSON, want)
		}
	}
}

// The call that an answer names reads the rest also where calls have to name a project.
func TestRestWithoutAProject(t *testing.T) {
	t.Parallel()
	p := newFolder(t, newFiles("long.txt", strings.Repeat("some words\n", 2_000)))
	s := server.New(server.Options{Version: "test", MapError: action.Fault})
	Register(s, namedProjects{p.Path: p}, Groups(), operation.All())
	c := servertest.Start(t, s)
	r := c.Call("rye_execute", map[string]any{
		"item_id": "rye/bash", "parameters": map[string]any{"command": "cat long.txt"}, "project_path": p.Path, "max_bytes": 2_000,
	})
	id := regexp.MustCompile(`answer:[0-9a-f]+`).FindString(string(r.JSON))
	if got := c.Call("rye_fetch", map[string]any{"item_id": id}); id == "" || got.IsError || !strings.Contains(string(got.JSON), "some words") {
		t.Errorf("%q, that %s names, is read as %s", id, r.JSON, got.JSON)
	}
	if got := c.Call("rye_fetch", map[string]any{"item_id": "greet"}); got.Code() != tool.CodeNoProject {
		t.Errorf("an item of no project is read as %s", got.JSON)
	}
}
