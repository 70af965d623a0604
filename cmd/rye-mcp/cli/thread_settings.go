package cli

import (
	"errors"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/loop"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// threadSettings are the settings that a thread goes by: those that its start has
// decided (*config.Decided), or a snapshot that its own process has taken.
type threadSettings interface {
	provider.Config
	hook.Source
	Coordination() (config.Coordination, []string, error)
	ErrorRules() (config.ErrorRules, []string, error)
	Integrity() (trust.Settings, error)
	Tools() (config.Tools, []string, error)
	Memory() (config.Memory, []string, error)
}

// errOtherSettings is the refusal of settings that no starter of the thread has
// decided: the program that hands them over would choose the provider that the thread
// calls, and its key.
var errOtherSettings = errors.New("the settings that were handed over are not those that thread.json names")

// settingsOf are the settings that were handed over, held against the thread.json of
// the thread. A starter of an earlier version hands over none, and one of another
// version may know other keys: then the files are read, once.
func settingsOf(loader *config.Loader, meta thread.Meta, handed []byte) (threadSettings, error) {
	if handed == nil {
		return loader.Read(), nil
	}
	if config.HashDecided(handed) != meta.SettingsHash {
		return nil, errOtherSettings
	}
	decided, err := loader.ReadDecided(handed)
	if errors.Is(err, config.ErrOtherForm) {
		return loader.Read(), nil
	}
	if err != nil {
		return nil, err
	}
	return decided, nil
}

// loopSettings is what the loop goes by.
func loopSettings(from threadSettings, gate *trust.Gate) (loop.Settings, error) {
	agent, _, err := from.Agent()
	if err != nil {
		return loop.Settings{}, err
	}
	resilience, _, err := from.Resilience()
	if err != nil {
		return loop.Settings{}, err
	}
	coordination, _, err := from.Coordination()
	if err != nil {
		return loop.Settings{}, err
	}
	return loop.Settings{
		ToolConcurrency: agent.Threads.ToolConcurrency, PaletteTokens: resilience.ToolPreload.MaxTokens,
		Retry: resilience.Retry, ErrorRules: from.ErrorRules, Results: resilience.Results,
		Nudge: resilience.Nudge, OnLimit: resilience.OnLimit, Continuation: coordination.Continuation, Notes: coordination.Notes,
		Hooks: func() (hook.Set, []string, error) { return hook.Load(from, gate) },
	}, nil
}
