package handler

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/orchestrator/news"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// newsroom is a project whose clients are told of their threads.
type newsroom struct {
	*testing.T
	p  *Project
	db storetest.Any
}

func newNewsroom(t *testing.T) newsroom {
	t.Helper()
	p := newFolder(t, newFiles())
	return newsroom{T: t, p: p, db: storetest.As(p.Control.Threads.Store)}
}

// client connects the program of a process number.
func (n newsroom) client(pid int, opts ...servertest.Option) *servertest.Client {
	p := *n.p
	p.Origin = func(s server.Session) thread.Origin { return program(pid).Origin(s.Client) }
	s := server.New(server.Options{Version: "test", MapError: action.Fault})
	Register(s, oneProject{only: &p}, Groups(), operation.All())
	return servertest.Start(n.T, s, opts...)
}

// program is a process of this machine, which need not be there.
func program(pid int) news.Client {
	return news.Client{Process: thread.Process(process.Here("here").Identify(pid))}
}

// start registers a running thread of the program of a process number.
func (n newsroom) start(directive string, pid int) thread.ID {
	n.Helper()
	now := time.Now()
	rec, _, err := store.Register(n.Context(), n.p.Control.Threads.Store, store.NewThread{
		Kind: thread.KindDirective, Directive: directive, Name: directive, Model: "m", Now: now, Origin: program(pid).Origin("servertest"),
	}, func(thread.ID) error { return nil })
	if err == nil { // it is run elsewhere, so that nobody here finds it dead
		_, err = n.db.Apply(n.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 4711, Host: "there", Boot: "another"}, now))
	}
	if err != nil {
		n.Fatal(err)
	}
	return rec.ThreadID
}

func (n newsroom) end(id thread.ID, as thread.State) {
	n.Helper()
	change, err := store.Finished(id, thread.Outcome{State: as}, nil, time.Now())
	if err == nil {
		_, err = n.db.Apply(n.Context(), change)
	}
	if err != nil {
		n.Fatal(err)
	}
}

// since is the member ended_since of an answer.
func (n newsroom) since(r servertest.Result) string {
	n.Helper()
	var answer struct {
		Since json.RawMessage `json:"ended_since"`
	}
	if err := json.Unmarshal(r.JSON, &answer); err != nil {
		n.Fatalf("%s: %v", r.JSON, err)
	}
	return string(answer.Since)
}

func (n newsroom) wantSince(r servertest.Result, want string) {
	n.Helper()
	if got := n.since(r); got != want {
		n.Errorf("ended_since is %s, want %s; answer: %s", got, want, r.JSON)
	}
}

// look is a call that tells nothing of threads itself.
func look(c *servertest.Client) servertest.Result {
	return c.Call("rye_search", map[string]any{"query": "greet"})
}

func TestEndedSince(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, transport := range servertest.Transports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			n := newNewsroom(t)
			mine, others := os.Getpid(), os.Getppid()
			c := n.client(mine, servertest.Over(transport))
			a, b := n.start("greet", mine), n.start("greet", mine)
			n.end(n.start("greet", others), thread.Completed)
			n.wantSince(look(c), "")
			n.end(a, thread.Error)
			r := look(c)
			n.wantSince(r, fmt.Sprintf(`{%q:"error"}`, a))
			if !strings.HasPrefix(string(r.JSON), `{"success":true,"ended_since":{`) {
				t.Errorf("not behind success: %.80s", r.JSON)
			}
			n.wantSince(look(c), "")
			n.end(b, thread.Completed)
			n.wantSince(c.Call("rye_fetch", map[string]any{"item_type": "directive", "item_id": "nothing"}), fmt.Sprintf(`{%q:"completed"}`, b))
		})
	}
}

// News that an answer reports itself stands nowhere else, then or later.
func TestEndedSinceIsNotRepeated(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, call := range map[string]func(id thread.ID) map[string]any{
		"wait_threads":      func(id thread.ID) map[string]any { return map[string]any{"thread_ids": []thread.ID{id}} },
		"aggregate_results": func(id thread.ID) map[string]any { return map[string]any{"thread_ids": []thread.ID{id}} },
		"get_status":        func(id thread.ID) map[string]any { return map[string]any{"thread_id": id} },
		"cancel_thread":     func(id thread.ID) map[string]any { return map[string]any{"thread_id": id} },
		"list_threads":      func(thread.ID) map[string]any { return nil },
		"rye_execute": func(id thread.ID) map[string]any {
			return map[string]any{
				"item_type": "tool", "item_id": "rye/agent/threads/orchestrator",
				"parameters": map[string]any{"operation": "get_status", "thread_id": id},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNewsroom(t)
			c := n.client(os.Getpid())
			id := n.start("greet", os.Getpid())
			n.end(id, thread.Completed)
			r := c.Call(name, call(id))
			if !strings.Contains(string(r.JSON), string(id)) {
				t.Fatalf("%s does not report the thread: %s", name, r.JSON)
			}
			n.wantSince(r, "")
			n.wantSince(look(c), "")
		})
	}
}

// A client that is gone has an heir: the next program of the name, which hears of what
// goes on, too. One that is there keeps its own.
func TestEndedSinceAfterReconnecting(t *testing.T) {
	t.Parallel()
	n := newNewsroom(t)
	const gone = 1 << 22 // no process has this number on Linux, and hardly one elsewhere
	ended, goesOn := n.start("greet", gone), n.start("greet", gone)
	n.end(ended, thread.Completed)
	there := n.start("greet", os.Getppid())
	n.end(there, thread.Completed)
	c := n.client(os.Getpid())
	n.wantSince(look(c), fmt.Sprintf(`{%q:"completed"}`, ended))
	n.end(goesOn, thread.Cancelled)
	n.wantSince(look(c), fmt.Sprintf(`{%q:"cancelled"}`, goesOn))
	n.wantSince(look(n.client(os.Getppid())), fmt.Sprintf(`{%q:"completed"}`, there))
}

func TestEndedSinceTellsOfQuestions(t *testing.T) {
	t.Parallel()
	n := newNewsroom(t)
	c := n.client(os.Getpid())
	id := n.start("greet", os.Getpid())
	q := thread.Question{
		ID: "q", ThreadID: id, Kind: thread.AskLimit, Code: "turns_exceeded", Text: "What now?", Options: []thread.Decision{thread.Stop},
		Default: thread.Stop, AskedAt: time.Now(), DeadlineAt: time.Now().Add(time.Hour),
	}
	if err := n.db.Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	n.wantSince(look(c), fmt.Sprintf(`{%q:"asks"}`, id))
	n.wantSince(look(c), "")
	n.end(id, thread.Completed)
	n.wantSince(look(c), fmt.Sprintf(`{%q:"completed"}`, id))
}

// TestAttackFloodOfEnds: hundreds of threads with long names end between two calls. Each answer tells at most 200 bytes of it, and the flood follows the client through one answer only.
func TestAttackFloodOfEnds(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	n := newNewsroom(t)
	c := n.client(os.Getpid())
	long := strings.Repeat("far/", 40) + "away" // one whose id has no room at all
	for i := range 120 {
		name := fmt.Sprintf("some/directive/with/a/name/%d", i)
		if i == 1 {
			name = long
		}
		n.end(n.start(name, os.Getpid()), thread.Completed)
	}
	r := look(c)
	got := n.since(r)
	if len(got) > news.Room || len(got) < news.Room/2 || !strings.Contains(got, `"more":1`) {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	n.wantSince(look(c), "")
	for range 5 {
		n.end(n.start("some/directive/with/a/name", os.Getpid()), thread.Completed)
	}
	told := 0
	for range 5 {
		since := n.since(look(c))
		told += strings.Count(since, `"completed"`)
		if len(since) > news.Room {
			t.Errorf("%d bytes: %s", len(since), since)
		}
	}
	if told != 5 {
		t.Errorf("%d of five were told", told)
	}
}

func TestHoldOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		client string
		heard  bool
		want   time.Duration
	}{
		{"claude-code", true, toTheEnd},
		{"claude-code", false, 0},
		{"opencode", true, toTheEnd},
		{"opencode", false, 0},
		{"codex-mcp-client", true, 4 * time.Minute},
		{"Codex-MCP-Client", false, 4 * time.Minute},
		{"gemini-cli-mcp-client-rye", false, 5 * time.Minute},
		{"cursor-vscode", true, 0},
		{"", true, 0},
	} {
		if got := holdOf(server.Session{Client: tt.client, HearsProgress: tt.heard}); got != tt.want {
			t.Errorf("%s (progress %v): %v, want %v", tt.client, tt.heard, got, tt.want)
		}
	}
	for _, h := range holds {
		if h.tried == "" || h.why == "" || h.client != strings.ToLower(h.client) {
			t.Errorf("%+v says neither version nor reason, or is never found", h)
		}
	}
}
