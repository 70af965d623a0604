package control

import (
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/fanout"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Crashpoints lists the crash points of starts, handoffs and stops, in order.
func Crashpoints() []thread.Crashpoint {
	return slices.Concat(scheduler.Crashpoints(), fanout.Crashpoints(), continuation.Crashpoints(), stop.Crashpoints())
}
