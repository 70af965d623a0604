package control

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestRename names threads in every state and notes something of them. One that hands
// over is called so with its successor. Nothing else of any of them changes; those that
// there are none of are refused by what has become of them.
func TestRename(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 3)
	ended, died, deleted := s.start("idle", ""), s.start("idle", ""), s.start("idle", "")
	s.order(ended, "complete")
	s.order(died, "give-up")
	s.order(deleted, "complete")
	s.wait(s.c, WaitAll, ended, died, deleted)
	_, err := s.c.Tidy.Delete(s.ctx, tidy.DeleteRequest{ThreadID: deleted, Agreed: true})
	s.noError(err)
	running, asks, over := s.start("idle", ""), s.start("work", ""), s.start("work", "")
	queued := s.begin("work", "").ThreadID
	s.asks(asks)
	s.order(over, "say hello", "make")

	for what, id := range map[string]thread.ID{
		"ended": ended, "died": died, "running": running, "asking": asks, "handing over": over, "queued": queued,
	} {
		before := s.row(id)
		rec, err := s.c.Threads.Label(s.ctx, id, "", "It is "+what, json.RawMessage(`{"is":"`+what+`"}`))
		if err != nil || rec.Name != "It is "+what || string(rec.Metadata) != `{"is":"`+what+`"}` {
			t.Errorf("%s: %+v, %v", what, rec, err)
		}
		if rec.Status != before.Status || rec.LastUsed != before.LastUsed || rec.Cost != before.Cost || rec.Queued() != before.Queued() {
			t.Errorf("%s was %+v and is %+v", what, before, rec)
		}
	}
	if next := s.row(s.handOver(over)); next.Name != "It is handing over" {
		t.Errorf("the successor is called %q", next.Name)
	}
	for id, says := range map[thread.ID]string{deleted: "was deleted on", "nobody-1": "no such thread"} {
		_, err := s.c.Threads.Label(s.ctx, id, "", "name", nil)
		if code(err) != tool.CodeNotFound || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", id, err)
		}
	}
	found, err := s.c.Health.Reconcile(s.ctx, health.ReconcileInput{All: true}, nil)
	if err != nil || len(found.Findings) > 0 {
		t.Errorf("afterwards %+v, %v", found.Findings, err)
	}
}

// TestAttackThreadRenamesOthers: a thread renames itself, the thread that has started it, a sibling and a stranger, so that a person takes one for another. It is refused but for the threads below it, also when a command that it has started asks.
func TestAttackThreadRenamesOthers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root, stranger := s.start("idle", ""), s.start("idle", "")
	a, b := s.start("work", root), s.start("work", root)
	below := s.start("work", a)
	for _, id := range []thread.ID{root, stranger, a, b} {
		before := s.row(id)
		_, asked := s.c.Threads.Label(s.ctx, id, a, "approved by the person", json.RawMessage(`{"team":"trusted"}`))
		s.c.Threads.Parent = a // as for what a tool of the thread starts
		_, started := s.c.Threads.Label(s.ctx, id, "", "approved by the person", nil)
		s.c.Threads.Parent = ""
		if code(asked) != tool.CodePermissionDenied || code(started) != tool.CodePermissionDenied {
			t.Errorf("%s renames %s: %v; a tool of it: %v", a, id, asked, started)
		}
		if now := s.row(id); now.Name != before.Name || string(now.Metadata) != string(before.Metadata) {
			t.Errorf("%s is called %q, %s", id, now.Name, now.Metadata)
		}
	}
	if rec, err := s.c.Threads.Label(s.ctx, below, a, "mine", nil); err != nil || rec.Name != "mine" {
		t.Errorf("%s renames %s: %+v, %v", a, below, rec, err)
	}
}
