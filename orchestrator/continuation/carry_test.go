package continuation

import (
	"reflect"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestContinuedMeta: the successor of a thread is bound as that was.
func TestContinuedMeta(t *testing.T) {
	t.Parallel()
	before := thread.Meta{
		ThreadID: "a-1", Directive: "a", DirectiveHash: "hash", Firing: []string{"once"}, Capabilities: []string{"rye.sign.*"},
		Ceiling: [][]string{{"rye.*"}}, Inputs: map[string]any{"x": 1.0}, Outcome: &thread.Outcome{State: thread.Completed},
		Chain: []thread.ChainLink{{Directive: "base", Hash: "other"}},
	}
	rec := thread.Record{ThreadID: "a-2", ContinuationOf: "a-1", ChainRootID: "a-1", Status: thread.Created}
	got := continued(before, rec, thread.Continuation{Via: thread.ViaHandoff, Position: 2})
	want := before
	want.ThreadID, want.ContinuationOf, want.ChainRootID, want.Status, want.Outcome = "a-2", "a-1", "a-1", thread.Created, nil
	want.Inputs = map[string]any{"x": 1.0, "previous_thread_id": "a-1"}
	want.Continuation = &thread.Continuation{Via: thread.ViaHandoff, Position: 2}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
