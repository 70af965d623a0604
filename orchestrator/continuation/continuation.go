// Package continuation makes threads that begin with the conversation of another: the
// successor of one that hands over, a new one for a thread that has ended and is
// resumed, and copies.
package continuation

import (
	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/verify"
)

// Continuer continues threads of a project.
type Continuer struct {
	Threads  *threads.Threads
	Settings *settings.Source
	Planner  *plan.Planner
	Queue    *scheduler.Scheduler
	Verify   *verify.Checker
}

// Call is one call of a continuer, with the settings of that.
type Call struct {
	*Continuer
	*settings.Call
}

// In is the continuer with the settings of a call.
func (c *Continuer) In(now *settings.Call) *Call { return &Call{c, now} }
