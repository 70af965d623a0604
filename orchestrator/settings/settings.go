// Package settings gives each call of the orchestrator one version of the settings.
package settings

import (
	"context"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// Source is where calls get their settings from.
type Source struct {
	Config    *config.Loader
	Providers *provider.Source
	Trust     *trust.Gate
	Log       zerolog.Logger
	// Machine names this machine and its user, where others run threads, too.
	Machine string
}

// Call is what one call goes by. It reads settings and keys at most once, so that all
// its steps see one version of each file.
type Call struct {
	Config    *config.Snapshot
	Providers *provider.Registry
	Trust     *trust.Gate

	machine string
	log     zerolog.Logger
	hooks   func() (loadedHooks, error)
	decided func() []byte
}

// Begin begins a call. Nothing is read before it is needed.
func (s *Source) Begin() *Call {
	set := s.Config.Read()
	c := &Call{Config: set, Providers: s.Providers.With(set), Trust: s.Trust.Once(set.Integrity), machine: s.Machine, log: s.Log}
	c.hooks = sync.OnceValues(func() (loadedHooks, error) {
		set, warnings, err := hook.Load(c.Config, c.Trust)
		return loadedHooks{set, warnings}, err
	})
	c.decided = sync.OnceValue(c.decide)
	return c
}

// Hooks are the hooks of settings files that the trust gate lets in, with warnings.
func (c *Call) Hooks() (hook.Set, []string, error) {
	loaded, err := c.hooks()
	return loaded.set, loaded.warnings, err
}

// loadedHooks are the hooks of settings files that the trust gate lets in.
type loadedHooks struct {
	set      hook.Set
	warnings []string
}

// decide writes down the settings for the processes of threads. It writes
// nothing when some cannot be used: the process reads them itself, and says what is
// wrong.
func (c *Call) decide() []byte {
	if _, err := c.hooks(); err != nil {
		return nil
	}
	data, err := c.Config.Decide()
	if err != nil {
		return nil
	}
	return data
}

// Handed is what the process of a thread with a model gets from this call. A key that a
// command should give and does not the process asks for itself, and says what is wrong.
func (c *Call) Handed(ctx context.Context, model string, secrets map[string]string) spawn.Handed {
	keys := c.Providers.KeyVariables()
	if tools, _, err := c.Config.Tools(); err == nil { // else the tools that need them say why they cannot be used
		keys = append(keys, tools.Variables()...)
	}
	given, err := c.Providers.Keys(ctx, model)
	if err != nil {
		c.log.Warn().Err(err).Msg("the key of a thread's provider")
	}
	if memory, _, err := c.Config.Memory(); err == nil && memory.Enabled {
		keys, given = c.embeddingKey(ctx, memory.Embedding, keys, given)
	}
	return spawn.Handed{Inputs: secrets, Keys: keys, ProviderKeys: given, Settings: c.decided()}
}

// embeddingKey adds the key of the endpoint that texts are embedded at.
func (c *Call) embeddingKey(
	ctx context.Context, set config.Embedding, variables []string, given map[string]string,
) ([]string, map[string]string) {
	endpoint := set.Endpoint()
	if endpoint.APIKeyEnv != "" {
		variables = append(variables, endpoint.APIKeyEnv)
	}
	key, err := c.Providers.KeyGiven(ctx, endpoint)
	if err != nil {
		c.log.Warn().Err(err).Msg("the key of the embedding endpoint")
	}
	if key == "" {
		return variables, given
	}
	given = maps.Clone(given)
	if given == nil {
		given = map[string]string{}
	}
	given[endpoint.Name] = key
	return variables, given
}

// Seal puts into the thread.json of a thread which settings its process is
// handed by this call.
func (c *Call) Seal(meta *thread.Meta) {
	meta.SettingsHash = ""
	if data := c.decided(); data != nil {
		meta.SettingsHash = config.HashDecided(data)
	}
}

// Accepted are the settings of the project that this machine's user has accepted, for a
// thread that another machine may run.
func (c *Call) Accepted() *thread.Accepted {
	return &thread.Accepted{Settings: config.Accepted(c.Config), By: c.machine}
}

// Accepts reports whether a thread may run here: its starter's user has accepted the same
// settings of the project, or is this one, who may have accepted others since.
func (c *Call) Accepts(started *thread.Accepted) bool {
	return started == nil || started.By == c.machine || started.Settings == config.Accepted(c.Config)
}

// slotsPerProcessor is how many threads run at the same time for each processor
// of the machine when the project does not say: most of the time a thread waits
// for its model.
const slotsPerProcessor = 32

// Slots is how many threads of the project run at the same time.
func (c *Call) Slots() int {
	agent, _, err := c.Config.Agent()
	if err != nil {
		c.log.Warn().Err(err).Msg("threads.max_running cannot be read; the default holds")
	}
	if err != nil || agent.Threads.MaxRunning == 0 {
		return slotsPerProcessor * runtime.NumCPU()
	}
	return agent.Threads.MaxRunning
}

// Patience of a cancel when the settings that name it cannot be read: a thread
// can be stopped whatever its project's files look like.
const (
	defaultSoft = 5 * time.Second
	defaultTerm = 3 * time.Second
)

// Patience is how patiently a thread is stopped, and whether what a dead
// one leaves running is stopped too.
func (c *Call) Patience() (l life.Ladder, keepOrphans bool) {
	agent, _, err := c.Config.Agent()
	if err != nil {
		c.log.Warn().Err(err).Msg("settings about stopping threads cannot be read; the defaults hold")
		return life.Ladder{Soft: defaultSoft, Term: defaultTerm}, false
	}
	s := agent.Threads
	return life.Ladder{Soft: Seconds(s.SoftStopSeconds), Term: Seconds(s.TermSeconds)},
		s.Orphans == config.OrphansKeep
}

// Seconds is a duration that is set in seconds.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
