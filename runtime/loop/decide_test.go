package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestDecideStop: a cancel is told as one, and a kill by its signal.
func TestDecideStop(t *testing.T) {
	t.Parallel()
	asked := thread.Record{
		CancelRequestedAt: time.Unix(1, 0), Metadata: json.RawMessage(`{"cancelled_by":"MCP client x","team":"a"}`),
	}.CancelCause()
	for name, c := range map[string]struct {
		err             error
		message, signal string
		asked           error
	}{
		"cancel by its signal, on record": {&thread.SignalError{Signal: "SIGINT"}, "cancelled by MCP client x", "SIGINT", asked},
		"kill, on record":                 {&thread.SignalError{Signal: "SIGTERM"}, "stopped by SIGTERM; cancelled by MCP client x", "SIGTERM", asked},
		"cancel found on record, by whom": {asked, "cancelled by MCP client x", "", nil},
		"cancel by its signal":            {&thread.SignalError{Signal: "SIGINT"}, "cancelled", "SIGINT", nil},
		"cancel during a call":            {fmt.Errorf("call: %w", &thread.SignalError{Signal: "SIGINT"}), "cancelled", "SIGINT", nil},
		"cancel found on record":          {thread.ErrCancelled, "cancelled", "", nil},
		"kill":                            {&thread.SignalError{Signal: "SIGTERM"}, "stopped by SIGTERM", "SIGTERM", nil},
		"end of the terminal":             {&thread.SignalError{Signal: "SIGHUP"}, "stopped by SIGHUP", "SIGHUP", nil},
		"end of what started it":          {context.Canceled, "context canceled", "", nil},
		"cancel beside a failure":         {errors.Join(errors.New("disk"), &thread.SignalError{Signal: "SIGINT"}), "cancelled", "SIGINT", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := decide(ended{err: c.err, asked: c.asked})
			if o.State != thread.Cancelled || o.Error.Code != "cancelled" || o.Error.Message != c.message || o.Error.Signal != c.signal {
				t.Errorf("%s %+v, want cancelled, message %q, signal %q", o.State, o.Error, c.message, c.signal)
			}
		})
	}
}
