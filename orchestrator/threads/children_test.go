package threads

import (
	"context"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// killed is a process that a signal ends when over is closed.
type killed struct {
	life.Running
	over chan struct{}
}

func (k killed) Done() <-chan struct{} { return k.over }

func (killed) Exit() life.Exit { return life.Exit{Code: -1, Signal: "SIGKILL"} }

// TestChildrenEndedFor holds that whoever settles a thread whose process was ended here hears
// why, and that nobody hears it of the next process.
func TestChildrenEndedFor(t *testing.T) {
	t.Parallel()
	exits := make(chan life.Exit, 1)
	var cs *children
	cs = newChildren(func(ctx context.Context, id thread.ID) {
		exit, _ := cs.exitOf(ctx, id)
		exits <- exit
	})
	defer cs.close()
	cs.endedFor("x-1", "it is not there yet")
	for _, c := range []struct{ why, want string }{
		{"", "killed by SIGKILL"}, {"the lease was lost", "killed by SIGKILL: the lease was lost"}, {"", "killed by SIGKILL"},
	} {
		over := make(chan struct{})
		cs.watch("x-1", killed{over: over})
		if c.why != "" {
			cs.endedFor("x-1", c.why)
		}
		close(over)
		if got := (<-exits).String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		cs.watches.Wait()
	}
}
