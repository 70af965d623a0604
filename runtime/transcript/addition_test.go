package transcript

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestAdd: what happened after the end verifies with the head that the end has
// fixed, and the thread has ended as it had.
func TestAdd(t *testing.T) {
	t.Parallel()
	path, key := newPath(t), newTestKey(1)
	w := open(t, path, key)
	writeTurn(t, w, 1)
	if err := w.Add(Addition{thread.EventHookFired, HookFired{}}); err == nil {
		t.Error("added before the end")
	}
	head, err := w.Finish(thread.Outcome{State: thread.Completed, Result: "done"}, thread.Cost{Turns: 1})
	must(t, err)
	before := len(allEvents(t, path))
	must(t, w.Add())
	must(t, w.Add(
		Addition{thread.EventChildThreadStarted, ChildStarted{ThreadID: "a-1"}},
		Addition{thread.EventHookFired, HookFired{HookID: "h"}},
	))
	must(t, w.Add(Addition{thread.EventHookFired, HookFired{HookID: "g"}}))
	for _, bad := range []thread.EventType{thread.EventCheckpoint, thread.EventThreadError} {
		if err := w.Add(Addition{bad, Ended{}}); err == nil {
			t.Errorf("%s was added", bad)
		}
	}
	must(t, w.Close())
	if _, err := Verify(records.File(path), key, &head); err != nil {
		t.Error(err)
	}
	if added := allEvents(t, path)[before:]; len(added) != 5 || added[0].Type != thread.EventChildThreadStarted ||
		added[2].Type != thread.EventCheckpoint || added[4].Type != thread.EventCheckpoint {
		t.Errorf("added %+v", added)
	}
	outcome, _, err := LastOutcome(records.File(path))
	must(t, err)
	if outcome.Result != "done" {
		t.Errorf("outcome %+v", outcome)
	}
	again := open(t, path, key)
	_, err = again.Finish(thread.Outcome{State: thread.Error}, thread.Cost{})
	must(t, errors.Join(err, again.Close()))
	if _, err := Verify(records.File(path), key, &head); err != nil {
		t.Errorf("after the end was repeated: %v", err)
	}
	// An addition is signed as all before it.
	whole := readFile(t, path)
	must(t, os.WriteFile(path, bytes.Replace(whole, []byte(`"hook_id":"g"`), []byte(`"hook_id":"x"`), 1), 0o600))
	var damage *TamperError
	if _, err := Verify(records.File(path), key, &head); !errors.As(err, &damage) {
		t.Errorf("an event after the end was altered: %v", err)
	}
}
