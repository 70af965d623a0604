package handler

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	greet = "# Greet\n\n```xml\n<directive name=\"greet\" version=\"1.0.0\">\n<metadata><description>Greets somebody</description>" +
		"<model tier=\"fast\" /><limits turns=\"2\" spend=\"0.05\" /></metadata>\n" +
		"<inputs><input name=\"name\" type=\"string\" required=\"true\">Whom to greet</input></inputs>\n</directive>\n```\n\nGreet {input:name}.\n"
	scriptedModel = "provider:\n  default: scripted\n"
)

func newFiles(more ...string) map[string]string {
	files := map[string]string{
		".ai/directives/greet.md":       greet,
		".ai/knowledge/facts.md":        "```yaml\nname: facts\ntitle: Facts\n```\n\nWater is wet.\n",
		".ai/config/agent/agent.yaml":   scriptedModel,
		".ai/directives/demo/broken.md": "no block",
		"note.txt":                      "one\n",
	}
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

// servertest checks every answer against the tool's output schema, its size,
// and that text and structured content are the same.
func TestCalls(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := connect(t, newFiles())
	type args = map[string]any
	tests := []struct {
		name, tool string
		args       args
		code       tool.Code // of a failure
		want       string    // in the JSON
	}{
		{"inline directive", "rye_execute", args{"item_id": "greet", "parameters": args{"name": "Ada"}}, "", `"body":"Greet Ada."`},
		{"tool", "rye_execute", args{"item_id": "rye/file-system/read", "parameters": args{"path": "note.txt"}}, "", `"data":`},
		{"knowledge", "rye_execute", args{"item_id": "facts"}, "", `Water is wet.`},
		{"plan of a tool", "rye_execute", args{"item_id": "rye/file-system/read", "parameters": args{"path": "note.txt"}, "dry_run": true}, "", `"executor":"rye/core/primitives/builtin"`},
		{"plan of a fork", "rye_execute", args{"item_id": "greet", "parameters": args{"name": "Ada"}, "thread": "fork", "dry_run": true}, "", `"worst_case_cost":0.05`},
		{"operation", "rye_execute", args{"item_id": "rye/agent/threads/orchestrator", "parameters": args{"operation": "list_threads"}}, "", `"threads":[]`},
		{"operation of its own shape", "rye_execute", operate("thread_health", nil), "", `"queued":0`},
		{"nearest ids", "rye_execute", args{"item_type": "directive", "item_id": "gret"}, tool.CodeNotFound, `"nearest_ids":["greet"`},
		{"missing input", "rye_execute", args{"item_id": "greet"}, tool.CodeInvalidInputs, `"declared_inputs":[{"name":"name"`},
		{"no such argument", "rye_execute", args{"item_id": "greet", "asynch": true}, tool.CodeBadArguments, `asynch`},
		{"unknown limit", "rye_execute", args{"item_id": "greet", "parameters": args{"name": "A"}, "limit_overrides": args{"steps": 1}}, tool.CodeInvalidLimits, `"valid_limits":[`},
		{"knowledge cannot be forked", "rye_execute", args{"item_id": "facts", "thread": "fork"}, tool.CodeUnsupported, `"hint":"`},
		{"broken item", "rye_execute", args{"item_id": "demo/broken"}, tool.CodeInvalidItem, `broken.md`},
		{"fetch", "rye_fetch", args{"item_id": "greet"}, "", `"total_bytes":`},
		{"fetch a broken item", "rye_fetch", args{"item_id": "demo/broken"}, "", `"warnings":["`},
		{"fetch by query", "rye_fetch", args{"query": "greets", "item_type": "directive"}, "", `"total":1`},
		{"fetch nothing", "rye_fetch", args{}, tool.CodeBadArguments, `item_id`},
		{"fetch out of the space", "rye_fetch", args{"item_id": "../../etc/passwd"}, tool.CodeBadID, ``},
		{"search", "rye_search", args{"query": "greet*"}, "", `"score":1,`},
		{"search finds nothing", "rye_search", args{"query": "zzzz"}, "", `"results":[]`},
		{"search with options", "rye_search", args{"query": "watr", "fuzzy": args{"max_distance": 1}, "fields": args{"title": "facts"}, "filters": args{"type": "knowledge"}, "sort_by": "name", "source": "project"}, "", `"id":"facts"`},
		{"search says what is missing", "rye_search", args{"query": "zzzz"}, "", `"hint":"No item here has: zzzz.`},
		{"fetch by a query", "rye_fetch", args{"query": "water AND NOT wine", "scope": "knowledge"}, "", `"signature":"unsigned"`},
		{"bad option", "rye_search", args{"query": "x", "fields": []string{"colour"}}, tool.CodeBadArguments, `valid are title, name`},
		{"bad query", "rye_search", args{"query": `"open`}, tool.CodeInvalidQuery, `"position":`},
		{"too many", "rye_search", args{"query": "*", "limit": 1000}, tool.CodeBadArguments, `limit`},
		{"no key", "rye_sign", args{"item_type": "directive", "item_id": "greet"}, tool.CodeNoKey, `Tell the person`},
		{"nothing to wait for", "wait_threads", args{"thread_ids": []string{}}, tool.CodeBadArguments, `thread_ids`},
		{"unknown thread", "wait_threads", args{"thread_ids": []string{"greet-1"}}, tool.CodeNotFound, `list_threads`},
		{"bad id", "get_status", args{"thread_id": "../x"}, "", ``},
		{"no threads", "list_threads", args{}, "", `"threads":[]`},
		{"none active", "list_active", args{}, "", `"count":0`},
		{"unknown status", "list_threads", args{"status": []string{"done"}}, tool.CodeBadArguments, `completed`},
		{"no transcript", "read_transcript", args{"thread_id": "greet-1"}, tool.CodeNotFound, ``},
		{"nothing to cancel", "cancel_thread", args{"thread_id": "greet-1"}, tool.CodeNotFound, ``},
		{"nothing to kill", "kill_thread", args{"thread_id": "greet-1"}, tool.CodeNotFound, ``},
		{"nothing to resume", "resume_thread", args{"thread_id": "greet-1", "message": "Go on."}, tool.CodeNotFound, ``},
		{"resume without a word", "resume_thread", args{"thread_id": "greet-1", "message": ""}, tool.CodeBadArguments, `message`},
		{"no chain", "get_chain", args{"thread_id": "greet-1"}, tool.CodeNotFound, ``},
		{"no chain to search", "chain_search", args{"thread_id": "greet-1", "query": "x"}, tool.CodeNotFound, ``},
		{"bad expression", "chain_search", args{"thread_id": "greet-1", "query": "(", "search_type": "regex"}, tool.CodeBadArguments, `search_type`},
		{"nothing to add up", "aggregate_results", args{"thread_ids": []string{"greet-1"}}, tool.CodeNotFound, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := c.Call(tt.tool, tt.args)
			if tt.name == "bad id" { // either code tells enough
				if code := r.Code(); code != tool.CodeBadID && code != tool.CodeNotFound {
					t.Errorf("got %s", r.JSON)
				}
				return
			}
			if r.Err != nil || r.Code() != tt.code || !strings.Contains(string(r.JSON), tt.want) {
				t.Errorf("got %s, %v; want code %q and %s", r.JSON, r.Err, tt.code, tt.want)
			}
		})
	}
}

// A thread whose process dies at once is told by every tool in the shape it is
// documented with.
func TestThreadThatDies(t *testing.T) {
	t.Parallel()
	c := connect(t, newFiles())
	fork := map[string]any{"item_id": "greet", "async": true, "parameters": map[string]any{"name": "Ada"}, "request_key": "k"}
	var started struct {
		ID string `json:"thread_id"`
	}
	decode(t, c.Call("rye_execute", fork), &started)
	ids := map[string]any{"thread_ids": []string{started.ID}}
	id := map[string]any{"thread_id": started.ID}
	for _, call := range []struct {
		tool, want string
		args       map[string]any
	}{
		{"wait_threads", `"pending":[]`, ids},
		{"get_status", `"status":"error"`, id},
		{"aggregate_results", `"by_status":{"error":1}`, ids},
		{"list_threads", `"count":1`, map[string]any{"status": []string{"error"}}},
		{"read_transcript", `process_died`, map[string]any{"thread_id": started.ID, "format": "jsonl"}},
		{"cancel_thread", `"how":"already_ended"`, id},
		{"kill_thread", `"how":"already_ended"`, id},
		{"get_chain", `"chain_length":1,`, id},
		{"rye_execute", `"chain_length":1,`, operate("get_chain", id)},
		{"chain_search", `"event_type":"thread_error"`, map[string]any{"thread_id": started.ID, "query": "PROCESS_DIED"}},
		{"rye_execute", `"count":0`, operate("chain_search", map[string]any{"thread_id": started.ID, "query": "nowhere"})},
	} {
		if r := c.Call(call.tool, call.args); r.Err != nil || r.IsError || !strings.Contains(string(r.JSON), call.want) {
			t.Errorf("%s = %s, %v; want %s", call.tool, r.JSON, r.Err, call.want)
		}
	}
	if r := c.Call("rye_execute", fork); !r.IsError || r.Code() != "process_died" || !strings.Contains(string(r.JSON), `"existing":true`) {
		t.Errorf("repeated: %s, %v", r.JSON, r.Err)
	}
	r := c.Call("resume_thread", map[string]any{"thread_id": started.ID, "message": "Go on."})
	if r.Code() != tool.CodeUnsupported || !strings.Contains(string(r.JSON), "rye_execute") {
		t.Errorf("resumed: %s, %v", r.JSON, r.Err)
	}
}

// operate is the older way to an operation on threads, which rye_execute is
// documented to answer too.
func operate(name string, params map[string]any) map[string]any {
	params = maps.Clone(params)
	if params == nil {
		params = map[string]any{}
	}
	params["operation"] = name
	return map[string]any{"item_id": "rye/agent/threads/orchestrator", "parameters": params}
}

// A long item is read whole in pages that every client passes on.
func TestFetchLongItem(t *testing.T) {
	t.Parallel()
	text := "```yaml\nname: long\n```\n\n" + strings.Repeat("\"Quoted\" and <b>marked</b>.\n", 4000)
	c := connect(t, newFiles(".ai/knowledge/long.md", text))
	var all strings.Builder
	for offset := 0; ; {
		var page struct {
			Content string `json:"content"`
			Next    int    `json:"next_offset"`
		}
		decode(t, c.Call("rye_fetch", map[string]any{"item_id": "long", "offset": offset, "max_bytes": 30_000}), &page)
		all.WriteString(page.Content)
		if offset = page.Next; offset == 0 {
			break
		}
	}
	if all.String() != text {
		t.Errorf("the pages make %d bytes, want %d", all.Len(), len(text))
	}
	if r := c.Call("rye_execute", map[string]any{"item_id": "long"}); r.IsError || !strings.Contains(string(r.JSON), "rye_fetch") {
		t.Errorf("executed: %.200s", r.JSON)
	}
}

// The longest result of a tool is passed on whole.
func TestLongToolResults(t *testing.T) {
	t.Parallel()
	c := connect(t, newFiles("long.txt", strings.Repeat("a \"quoted\" <line> of code && more\n", 5000)))
	for tool, params := range map[string]map[string]any{
		"rye/file-system/read": {"path": "long.txt"}, "rye/file-system/grep": {"pattern": "quoted"},
		"rye/bash": {"command": "cat long.txt; cat long.txt >&2"},
	} {
		if r := c.Call("rye_execute", map[string]any{"item_id": tool, "parameters": params}); r.Err != nil || r.IsError {
			t.Errorf("%s: %.300s, %v", tool, r.JSON, r.Err)
		}
	}
}

// A hundred results are more than one answer can carry; the rest comes with
// next_offset.
func TestSearchManyItems(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	files := newFiles()
	for i := range 120 {
		files[fmt.Sprintf(".ai/knowledge/many/entry-%03d.md", i)] = fmt.Sprintf("```yaml\nname: entry-%03d\ntitle: Long\ndescription: %s\n```\n\n%s\n",
			i, strings.Repeat("Words ", 60), strings.Repeat("needle and thread ", 30))
	}
	c := connect(t, files)
	seen := 0
	for offset := 0; ; {
		var page struct {
			Results []json.RawMessage `json:"results"`
			Total   int               `json:"total"`
			Next    int               `json:"next_offset"`
		}
		decode(t, c.Call("rye_search", map[string]any{"query": "needle", "limit": 100, "offset": offset}), &page)
		seen += len(page.Results)
		if offset = page.Next; offset == 0 {
			if seen != 120 || page.Total != 120 {
				t.Errorf("%d results on all pages, total %d", seen, page.Total)
			}
			return
		}
	}
}

// However long their names are, a page of threads is passed on whole, and the
// pages have every thread once.
func TestListManyThreads(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const threads = 60
	p := newProject(t, t.TempDir())
	directive := strings.Repeat("long/", 40) + "name"
	for i := range threads {
		_, _, err := store.Register(t.Context(), p.Control.Threads.Store, store.NewThread{
			Kind: thread.KindDirective, Directive: directive, Name: directive, Model: "scripted/scripted-fast", Now: time.Unix(int64(1_800_000_000+i), 0),
		}, func(thread.ID) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	c := connectTo(t, p)
	seen := map[string]bool{}
	for cursor := ""; ; {
		var page struct {
			Threads []struct {
				ID string `json:"thread_id"`
			} `json:"threads"`
			Next string `json:"next_cursor"`
		}
		decode(t, c.Call("list_threads", map[string]any{"limit": 100, "cursor": cursor}), &page)
		for _, thread := range page.Threads {
			if seen[thread.ID] {
				t.Errorf("%s is on two pages", thread.ID)
			}
			seen[thread.ID] = true
		}
		if cursor = page.Next; cursor == "" {
			if len(seen) != threads {
				t.Errorf("%d threads on all pages, want %d", len(seen), threads)
			}
			return
		}
	}
}

func decode(t *testing.T, r servertest.Result, into any) {
	t.Helper()
	if r.Err != nil || r.IsError {
		t.Fatalf("got %s, %v", r.JSON, r.Err)
	}
	if err := json.Unmarshal(r.JSON, into); err != nil {
		t.Fatal(err)
	}
}
