package control

import (
	"sync"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
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

	hooks   func() (loadedHooks, error)
	decided func() []byte
}

// loadedHooks are the hooks of settings files that the trust gate lets in.
type loadedHooks struct {
	set      hook.Set
	warnings []string
}

// newCall begins a call. Nothing is read before it is needed.
func (c *Controller) newCall() *call {
	settings := c.Config.Read()
	n := &call{
		Controller: c, Config: settings, Providers: c.Providers.With(settings), Trust: c.Trust.Once(settings.Integrity),
	}
	n.hooks = sync.OnceValues(func() (loadedHooks, error) {
		set, warnings, err := hook.Load(n.Config, n.Trust)
		return loadedHooks{set, warnings}, err
	})
	n.decided = sync.OnceValue(n.decide)
	return n
}

// decide writes down the settings for the processes of threads. Where some cannot be
// used there is nothing: the process reads them itself, and says what is wrong.
func (c *call) decide() []byte {
	if _, err := c.hooks(); err != nil {
		return nil
	}
	data, err := c.Config.Decide()
	if err != nil {
		return nil
	}
	return data
}

// handed is what the process of a thread gets from this call.
func (c *call) handed(secrets map[string]string) spawn.Handed {
	return spawn.Handed{Inputs: secrets, Keys: c.Providers.KeyVariables(), Settings: c.decided()}
}

// sealSettings puts into the thread.json of a thread which settings its process is
// handed by this call.
func (c *call) sealSettings(meta *thread.Meta) {
	meta.SettingsHash = ""
	if data := c.decided(); data != nil {
		meta.SettingsHash = config.HashDecided(data)
	}
}

// resealSettings is sealSettings for a thread that has stood in line: its process
// goes by the settings as they are now. One whose thread.json cannot be used its own
// process refuses.
func (c *call) resealSettings(id thread.ID) error {
	if meta, err := c.Threads.OwnMeta(id); err == nil {
		before := meta.SettingsHash
		if c.sealSettings(&meta); meta.SettingsHash != before {
			return c.Threads.Folder(id).WriteMeta(meta, c.Home().Seal)
		}
	}
	return nil
}
