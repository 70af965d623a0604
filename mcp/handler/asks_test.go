package handler

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// A client that can ask nobody hears of a question at once, over every transport, by
// the call that waits for the thread: with the question and with how it is answered.
// Nothing answers here, so one that waited would end with the test's time.
func TestQuestionsAreToldAtOnce(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, transport := range servertest.Transports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			p := newFolder(t, newFiles())
			p.Origin = func(s server.Session) thread.Origin { return thread.Origin{Client: "claude-code", Key: s.ID} }
			q, finish := waitingThread(t, p)
			defer finish()
			s := server.New(server.Options{Version: "test", MapError: action.Fault})
			Register(s, oneProject{only: p}, Groups(), operation.All())
			c := servertest.Start(t, s, servertest.Over(transport))
			for range 2 { // also when it is known already
				r := c.Call("wait_threads", map[string]any{"thread_ids": []thread.ID{q.ThreadID}})
				wantQuestion(t, r, q)
			}
			r := c.Call("rye_execute", map[string]any{"item_id": "greet", "thread": "fork", "request_key": waitingKey})
			if !strings.Contains(string(r.JSON), `"existing":true`) {
				t.Fatalf("not the thread that asks: %s", r.JSON)
			}
			wantQuestion(t, r, q)
		})
	}
}

func wantQuestion(t *testing.T, r servertest.Result, q thread.Question) {
	t.Helper()
	for _, want := range []string{
		`"status":"running"`, `"waiting":[{`, `"question_id":"` + q.ID, `"text":"What now?"`, `"options":["raise","finish","stop"]`,
		`"how_to_answer":"approve_thread with this thread_id`, `"next":"thread ` + string(q.ThreadID) + ` waits to be told what to do`,
	} {
		if !strings.Contains(string(r.JSON), want) {
			t.Errorf("the answer lacks %s: %s", want, r.JSON)
		}
	}
}

// While one asks and another works, the wait goes on and its progress names who asks and
// until when.
func TestProgressNamesWhoAsks(t *testing.T) {
	t.Parallel()
	p := newFolder(t, newFiles())
	q, finish := waitingThread(t, p)
	n := newsroom{T: t, p: p, db: storetest.As(p.Control.Threads.Store)}
	busy := n.start("greet", 1)
	c := connectTo(t, p)
	waiting := c.CallAsync("wait_threads", map[string]any{"thread_ids": []thread.ID{q.ThreadID, busy}, "wait_seconds": 600})
	for named := false; !named; {
		now, more := waiting.ReadProgress()
		if !more {
			t.Fatalf("over: %s", waiting.Result().JSON)
		}
		named = strings.Contains(now.Message, "0 of 2 ended") && strings.Contains(now.Message, "thread "+string(q.ThreadID)+" waits until "+q.DeadlineAt.UTC().Format("15:04:05 UTC"))
	}
	finish()
	n.end(busy, thread.Completed)
	if r := waiting.Result(); !strings.Contains(string(r.JSON), `"pending":[]`) {
		t.Errorf("%s", r.JSON)
	}
}
