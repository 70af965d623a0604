// Package scheduler brings threads to run: it registers them, queues them, gives slots to
// those that are next, and starts their processes.
package scheduler

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/life"
)

// Launcher starts the processes of threads.
type Launcher interface {
	// Launch starts the process of a registered thread and hands it the hold. The
	// caller lets go of its own afterwards.
	Launch(spawn.Request) (life.Running, error)
}

// Scheduler runs the threads of a project.
type Scheduler struct {
	Threads  *threads.Threads
	View     *view.View
	Settings *settings.Source
	Launcher Launcher
	// Sets starts the entries of fan-out sets that are next, see [store.Sets]; nil: there
	// are none.
	Sets func(context.Context, *settings.Call) error

	// Retries makes the attempts that are due, see [store.Retries], and returns when the
	// next one is, or zero; nil: nobody makes any.
	Retries func(context.Context, *settings.Call) (time.Time, error)

	// Able reports whether this machine can use a provider now, which may be one that runs on
	// it; nil: keys and settings alone decide.
	Able func(provider string) bool

	wakes      wakes
	passes     passes
	nextRetry  atomic.Int64 // of the last pass, in milliseconds; only for when to look again
	yielding   yielding
	complaints sync.Map // by thread id: text of the error that was logged last
}

// Call is one call of a scheduler, with the settings of that.
type Call struct {
	*Scheduler
	*settings.Call
}

// In is the scheduler with the settings of a call.
func (c *Scheduler) In(now *settings.Call) *Call { return &Call{c, now} }

func (c *Scheduler) begin() *Call { return c.In(c.Settings.Begin()) }
