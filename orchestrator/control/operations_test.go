package control_test

import (
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// The operations import this package, so that its own tests cannot import them.
func init() {
	control.OfOperations = func(c *control.Controller) action.Threads {
		return operation.Actions{Threads: control.Threads{Controller: c}, Table: operation.All()}
	}
}
