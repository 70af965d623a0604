package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// Loader reads settings. Each call reads the files as they are then. It is safe
// for concurrent use.
//
// The second result of its methods are warnings for a person, one line each,
// beginning with file and line. An error about the content of a file is an
// [*Error].
type Loader struct {
	places []place
	// schemas holds compiled schemas by name: compiling one costs more than all
	// the rest of a load. Where nothing but shipped files is read none is compiled;
	// all of them are 0.9 of the 7.4 MB that a thread's process allocates until it
	// first calls its model (profile with memprofilerate=1).
	schemas sync.Map
}

// New returns a loader of the settings in roots. The system space must hold the
// shipped settings, which are not checked against their schemas: a test has done
// that.
func New(roots resolve.Roots) *Loader {
	return &Loader{places: places(roots)}
}

// Agent reads agent.yaml.
func (l *Loader) Agent() (Agent, []string, error) {
	var agent Agent
	s, err := l.agentSettings()
	if err != nil {
		return agent, s.warnings, err
	}
	return agent, s.warnings, s.decode(&agent)
}

// Integrity reads how strictly signatures are taken.
func (l *Loader) Integrity() (trust.Settings, error) {
	agent, _, err := l.Agent()
	return agent.Integrity, err
}

func (l *Loader) agentSettings() (settings, error) {
	s, err := l.load("agent.schema.json", "agent/agent.yaml")
	if err == nil {
		s.dropProjectTrust()
	}
	return s, err
}

// Coordination reads coordination.yaml. In each space config/coordination.yaml,
// where the original system had it, is read before
// config/agent/coordination.yaml. Either may have its content below a key
// "coordination".
func (l *Loader) Coordination() (Coordination, []string, error) {
	var c Coordination
	s, err := l.coordinationSettings()
	if err != nil {
		return c, s.warnings, err
	}
	err = s.decode(&c)
	c.WaitThreads.DefaultTimeout = min(c.WaitThreads.DefaultTimeout, c.WaitThreads.MaxTimeout)
	return c, s.warnings, err
}

// coordinationKey is the key that the content of coordination.yaml may stand
// below.
const coordinationKey = "coordination"

func (l *Loader) coordinationSettings() (settings, error) {
	s, err := l.load("coordination.schema.json", "coordination.yaml", "agent/coordination.yaml")
	if err != nil {
		return s, err
	}
	for i, layer := range s.layers {
		inner, ok := layer.values[coordinationKey].(map[string]any)
		if !ok {
			continue
		}
		delete(layer.values, coordinationKey)
		merge(layer.values, inner)
		s.layers[i].spellings = func(at []string) [][]string {
			return [][]string{slices.Concat([]string{coordinationKey}, at)}
		}
	}
	s.dropProjectLenience()
	return s, nil
}

// Resilience reads resilience.yaml. A limit may be spelled with max_ in front.
func (l *Loader) Resilience() (Resilience, []string, error) {
	var r Resilience
	s, err := l.resilienceSettings()
	if err != nil {
		return r, s.warnings, err
	}
	if err := s.decode(&r); err != nil {
		return r, s.warnings, err
	}
	return r, s.warnings, r.readLimits(&s)
}

func (l *Loader) resilienceSettings() (settings, error) {
	s, err := l.load("resilience.schema.json", "agent/resilience.yaml")
	if err != nil {
		return s, err
	}
	for i, layer := range s.layers {
		if err := layer.canonicalLimits(); err != nil {
			return s.broken(), err
		}
		s.layers[i].spellings = longLimit
	}
	s.dropProjectBounds()
	return s, nil
}

// longLimit is the other spelling of a limit.
func longLimit(at []string) [][]string {
	if len(at) != 2 || at[0] != "limits" {
		return nil
	}
	return [][]string{{at[0], maxPrefix + at[1]}}
}

// maxPrefix may stand in front of the name of a limit.
const maxPrefix = "max_"

// canonicalLimits drops max_ from the names of limits, so that both spellings
// merge.
func (l layer) canonicalLimits() error {
	limits, ok := l.values["limits"].(map[string]any)
	if !ok {
		return nil
	}
	for _, name := range item.LimitNames() {
		value, long := limits[maxPrefix+name]
		if !long {
			continue
		}
		if _, short := limits[name]; short {
			return l.errorAt([]string{"limits", maxPrefix + name}, "the limit is given twice, as %s too", name)
		}
		delete(limits, maxPrefix+name)
		limits[name] = value
	}
	return nil
}

// settings are the layers of one kind of file, checked, lowest precedence first.
type settings struct {
	layers   []layer
	warnings []string
}

// broken is what remains when one of the files cannot be used: nothing holds
// then, not even what the others say.
func (s *settings) broken() settings { return settings{warnings: s.warnings} }

// load reads and checks the given files in every space. The last of them must
// exist in the system space, for it holds the defaults.
func (l *Loader) load(schema string, files ...string) (settings, error) {
	if _, name, err := l.places[0].read(files[len(files)-1]); err != nil {
		return settings{}, fmt.Errorf("shipped settings %s: %w", name, err)
	}
	return l.loadAny(schema, files...)
}

// schema compiles a schema when it is first needed.
func (l *Loader) schema(name string) (*jsonschema.Schema, error) {
	if known, ok := l.schemas.Load(name); ok {
		return known.(*jsonschema.Schema), nil //nolint:forcetypeassert // only schemas are stored
	}
	compiled, err := compileSchema(name)
	if err == nil {
		l.schemas.Store(name, compiled)
	}
	return compiled, err
}

// loadAny reads and checks the given files in every space that has them.
func (l *Loader) loadAny(schema string, files ...string) (settings, error) {
	var s settings
	for _, place := range l.places {
		for _, file := range files {
			data, name, err := place.read(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return s.broken(), fmt.Errorf("settings %s: %w", name, err)
			}
			layer, err := parseLayer(name, data)
			if err != nil {
				return s.broken(), err
			}
			layer.space = place.space()
			if err := l.check(&s, layer, schema); err != nil {
				return s.broken(), err
			}
			s.layers = append(s.layers, layer)
		}
	}
	return s, nil
}

// check checks a layer that was not shipped; its warnings go to s.
func (l *Loader) check(s *settings, layer layer, schema string) error {
	if layer.space == item.System {
		return nil
	}
	compiled, err := l.schema(schema)
	if err != nil {
		return fmt.Errorf("settings schema %s: %w", schema, err)
	}
	warnings, err := layer.check(compiled)
	s.warnings = append(s.warnings, warnings...)
	return err
}

// merged is what the layers say together.
func (s *settings) merged() map[string]any {
	merged := map[string]any{}
	for _, layer := range s.layers {
		merge(merged, layer.values)
	}
	return merged
}

// decode merges the layers into v.
func (s *settings) decode(v any) error {
	if err := nodeOf(s.merged()).Decode(v); err != nil {
		return fmt.Errorf("merge settings: %w", err)
	}
	return nil
}

// errorAt makes an error for the value at a path of keys, in the file that
// decided it.
func (s *settings) errorAt(at []string, format string, args ...any) error {
	for i := len(s.layers) - 1; i >= 0; i-- {
		if s.layers[i].has(at) {
			return s.layers[i].errorAt(at, format, args...)
		}
	}
	top := s.layers[len(s.layers)-1]
	return &Error{Path: top.path, Reason: strings.TrimSpace(dotted(at) + ": " + fmt.Sprintf(format, args...))}
}

// merge lays over on top of base: maps merge, anything else replaces. Base is
// changed, over is not.
func merge(base, over map[string]any) {
	for key, value := range over {
		inner, ok := value.(map[string]any)
		if !ok {
			base[key] = value
			continue
		}
		// Not the map that is there: it may belong to another layer.
		merged := map[string]any{}
		if lower, ok := base[key].(map[string]any); ok {
			maps.Copy(merged, lower)
		}
		merge(merged, inner)
		base[key] = merged
	}
}
