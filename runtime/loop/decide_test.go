package loop

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestDecideStop: a cancel is told as one, and a kill by its signal.
func TestDecideStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err             error
		message, signal string
	}{
		"cancel by its signal":    {&thread.SignalError{Signal: "SIGINT"}, "cancelled", "SIGINT"},
		"cancel during a call":    {fmt.Errorf("call: %w", &thread.SignalError{Signal: "SIGINT"}), "cancelled", "SIGINT"},
		"cancel found on record":  {thread.ErrCancelled, "cancelled", ""},
		"kill":                    {&thread.SignalError{Signal: "SIGTERM"}, "stopped by SIGTERM", "SIGTERM"},
		"end of the terminal":     {&thread.SignalError{Signal: "SIGHUP"}, "stopped by SIGHUP", "SIGHUP"},
		"end of what started it":  {context.Canceled, "context canceled", ""},
		"cancel beside a failure": {errors.Join(errors.New("disk"), &thread.SignalError{Signal: "SIGINT"}), "cancelled", "SIGINT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := decide(ended{err: c.err})
			if o.State != thread.Cancelled || o.Error.Code != "cancelled" || o.Error.Message != c.message || o.Error.Signal != c.signal {
				t.Errorf("%s %+v, want cancelled, message %q, signal %q", o.State, o.Error, c.message, c.signal)
			}
		})
	}
}
