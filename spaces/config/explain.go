package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Names of the settings that [Snapshot.Explain] knows, beside ProviderSettings
// followed by the name of a provider.
const (
	AgentSettings        = "agent"
	CoordinationSettings = "coordination"
	ResilienceSettings   = "resilience"
	RiskSettings         = "capability_risk"
	ToolsSettings        = "tools"
	NotifySettings       = "notify"
	MemorySettings       = "memory"
	StoreSettings        = "store"
	MirrorSettings       = "mirror"
	ProviderSettings     = "providers/"
)

// Value is one setting as it holds when all spaces are merged, and the file that
// decided it.
type Value struct {
	Key   []string   // path of keys, as the newest spelling has it
	Value any        // JSON types; a list or an empty map is one value
	Space item.Space // empty when no file says it
	Path  string     // of the file; empty when no file says it
	Line  int        // from 1
}

// Explained are the settings of one name.
type Explained struct {
	Values   []Value // sorted by key
	Warnings []string
	LeftOut  []Notice // what of the project does not count
}

// UnknownSettingsError says that there are no settings of a name.
type UnknownSettingsError struct {
	Name    string
	Known   []string
	Nearest string // the one that was likely meant; may be empty
}

func (e *UnknownSettingsError) Error() string {
	return "no settings " + e.Name + "; there are " + strings.Join(e.Known, ", ")
}

// SettingsNames lists what Explain knows, the providers of all spaces last.
func (sn *Snapshot) SettingsNames() ([]string, error) {
	names := []string{AgentSettings, CoordinationSettings, ResilienceSettings, RiskSettings, ToolsSettings, NotifySettings, MemorySettings, StoreSettings, MirrorSettings}
	providers, err := sn.ProviderNames()
	for _, name := range providers {
		names = append(names, ProviderSettings+name)
	}
	return names, err
}

// Explain merges the settings of a name and says where each value comes from.
// Together the values are what [Snapshot.Agent], [Snapshot.Coordination],
// [Snapshot.Resilience] or [Snapshot.Provider] decode, whose errors it returns; of
// [Snapshot.Risk] they are the last policy. There are no values when a file cannot be used; an error about the merged settings
// comes beside them. An unknown name is an [*UnknownSettingsError].
func (sn *Snapshot) Explain(name string) (Explained, error) {
	var (
		s    settings
		err  error
		more func([]Value) []Value // what follows from the values together
	)
	switch name {
	case AgentSettings:
		s, err = sn.agentSettings()
	case CoordinationSettings:
		s, err = sn.coordinationSettings()
		more = boundTimeout
	case ResilienceSettings:
		s, err = sn.resilienceSettings()
	case RiskSettings:
		s, err = sn.riskSettings()
	case ToolsSettings:
		s, err = sn.toolsSettings()
	case NotifySettings:
		s, err = sn.notifySettings()
	case MemorySettings:
		s, err = sn.memorySettings()
	case StoreSettings:
		s, err = sn.load(storeKind)
	case MirrorSettings:
		s, err = sn.load(mirrorKind)
	default:
		return sn.explainProvider(name)
	}
	values := s.values()
	if more != nil {
		values = more(values)
	}
	return Explained{Values: values, Warnings: s.warnings, LeftOut: s.leftOut}, err
}

func (sn *Snapshot) explainProvider(name string) (Explained, error) {
	known, err := sn.SettingsNames()
	if err != nil {
		return Explained{}, err
	}
	if !slices.Contains(known, name) {
		return Explained{}, &UnknownSettingsError{Name: name, Known: known, Nearest: item.Nearest(name, known)}
	}
	provider, s, err := sn.provider(strings.TrimPrefix(name, ProviderSettings))
	values := s.values()
	if i, found := search(values, "tool_use"); !found && provider.ToolUse != "" {
		values = slices.Insert(values, i, Value{Key: []string{"tool_use"}, Value: provider.ToolUse})
	}
	return Explained{Values: values, Warnings: s.warnings, LeftOut: s.leftOut}, err
}

// boundTimeout gives a wait that does not name its time no more than the longest
// one may have, as the loader does.
func boundTimeout(values []Value) []Value {
	i, hasDefault := search(values, "wait_threads", "default_timeout")
	j, hasMax := search(values, "wait_threads", "max_timeout")
	if hasDefault && hasMax && seconds(values[i].Value) > seconds(values[j].Value) {
		bound := values[j]
		bound.Key = values[i].Key
		values[i] = bound
	}
	return values
}

func seconds(v any) float64 {
	switch n := v.(type) {
	case int:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

// values are the merged settings with the layer that decided each.
func (s *settings) values() []Value {
	var values []Value
	var walk func(merged map[string]any, at []string)
	walk = func(merged map[string]any, at []string) {
		for _, key := range slices.Sorted(maps.Keys(merged)) {
			here := below(at, key)
			if inner, ok := merged[key].(map[string]any); ok && len(inner) > 0 {
				walk(inner, here)
				continue
			}
			values = append(values, s.origin(here, merged[key]))
		}
	}
	walk(s.merged(), nil)
	slices.SortFunc(values, func(a, b Value) int { return slices.Compare(a.Key, b.Key) })
	return values
}

// origin names the uppermost layer that has the value at a path of keys: maps
// are merged and everything else replaces, so it is the one that holds.
func (s *settings) origin(at []string, value any) Value {
	v := Value{Key: at, Value: value}
	for _, l := range slices.Backward(s.layers) {
		if l.gives(at) {
			v.Space, v.Path, v.Line = l.space, l.path, l.writtenAt(at)
			break
		}
	}
	return v
}

// gives reports whether the layer has a value at a path of keys.
func (l layer) gives(at []string) bool {
	values := l.values
	for _, key := range at[:len(at)-1] {
		inner, ok := values[key].(map[string]any)
		if !ok {
			return false
		}
		values = inner
	}
	_, given := values[at[len(at)-1]]
	return given
}

// writtenAt is the line of the value at a path of keys, however the file spells
// the path.
func (l layer) writtenAt(at []string) int {
	if l.spellings != nil {
		for _, other := range l.spellings(at) {
			if l.has(other) {
				return l.lineOf(other)
			}
		}
	}
	return l.lineOf(at)
}

// search finds a key in sorted values, or where it would stand.
func search(values []Value, key ...string) (int, bool) {
	return slices.BinarySearchFunc(values, key, func(v Value, key []string) int { return slices.Compare(v.Key, key) })
}
