package control

import "github.com/rye-mcp/rye-mcp/orchestrator/settings"

// call is one call of the controller with its settings, which are read at most once.
// They hide those of the controller, of which they are made.
type call struct {
	*Controller
	*settings.Call
}

// newCall begins a call.
func (c *Controller) newCall() *call { return &call{c, c.Settings.Begin()} }
