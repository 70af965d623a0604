package control

import (
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// call is one call of the controller. It reads settings and keys at most once, so
// that all its steps see one version of each file. Its Config, Providers and Trust
// hide those of the controller, of which they are made.
type call struct {
	*Controller
	Config    *config.Snapshot
	Providers *provider.Registry
	Trust     *trust.Gate
}

// newCall begins a call. Nothing is read before it is needed.
func (c *Controller) newCall() *call {
	settings := c.Config.Read()
	return &call{
		Controller: c, Config: settings, Providers: c.Providers.With(settings), Trust: c.Trust.Once(settings.Integrity),
	}
}
