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
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// Loader reads settings. Each call reads the files as they are then. It is safe
// for concurrent use.
//
// The second result of its methods are warnings for a person, one line each,
// beginning with file and line. An error about the content of a file is an
// [*Error]. [Loader.LeftOut] tells which settings of a project do not count.
type Loader struct {
	own     []place // of system and user space
	project func() project
	// schemas holds compiled schemas by name: compiling one costs more than all
	// the rest of a load. Where nothing but shipped files is read none is compiled;
	// all of them are 0.9 of the 7.4 MB that a thread's process allocates until it
	// first calls its model (profile with memprofilerate=1).
	schemas sync.Map
	rules   sync.Map // what the schemas say about projects, by name
}

// kind is one kind of settings.
type kind struct {
	schema string
	files  []string // in each space; the last holds the defaults
	// shipped: the system space must have it.
	shipped bool
	// canonical brings a layer into the form that the schema has first; may be nil.
	canonical func(*layer) error
	// whole: a project's files count as a whole or not at all, because all that they
	// say makes calls, chooses whom to call, or runs something.
	whole bool
	// merged: the keys of its files are merged, so that a file which counts because
	// a key is followed can do without those that a followed key does not decide.
	merged bool
}

var (
	agentKind        = kind{schema: "agent.schema.json", files: []string{"agent/agent.yaml"}, shipped: true}
	coordinationKind = kind{
		schema: "coordination.schema.json", files: []string{"coordination.yaml", "agent/coordination.yaml"},
		shipped: true, canonical: flatCoordination,
	}
	resilienceKind = kind{
		schema: "resilience.schema.json", files: []string{"agent/resilience.yaml"}, shipped: true, canonical: canonicalResilience,
	}
	riskKind  = kind{schema: "capability_risk.schema.json", files: []string{"agent/capability_risk.yaml"}, shipped: true}
	errorKind = kind{schema: "error_classification.schema.json", files: []string{"agent/error_classification.yaml"}, shipped: true, whole: true}
	hooksKind = kind{schema: "hooks.schema.json", files: []string{"agent/hooks.yaml"}, whole: true}
)

// providersDir holds the files of providers.
const providersDir = "agent/providers"

func providerKind(name string) kind {
	return kind{schema: "provider.schema.json", files: []string{providersDir + "/" + name + ".yaml"}, whole: true, merged: true}
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

// Notices are the warnings of all settings, and what of the project does not count,
// each once. A file that does not load has none: the call that needs it fails, and
// says why.
func (l *Loader) Notices() []string {
	loads := []func() ([]string, error){
		func() ([]string, error) { _, w, err := l.Agent(); return w, err },
		func() ([]string, error) { _, w, err := l.Coordination(); return w, err },
		func() ([]string, error) { _, w, err := l.Resilience(); return w, err },
		func() ([]string, error) { _, w, err := l.Risk(); return w, err },
		func() ([]string, error) { _, w, err := l.ErrorRules(); return w, err },
		func() ([]string, error) { _, w, err := l.Hooks(); return w, err },
	}
	names, _ := l.ProviderNames() // the search for a provider tells its error
	for _, name := range names {
		loads = append(loads, func() ([]string, error) { _, w, err := l.Provider(name); return w, err })
	}
	var all []string
	for _, n := range l.LeftOut() {
		all = append(all, n.String())
	}
	for _, load := range loads {
		warnings, err := load()
		if err != nil {
			continue
		}
		for _, w := range warnings {
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	return all
}

// Integrity reads how strictly signatures are taken.
func (l *Loader) Integrity() (trust.Settings, error) {
	agent, _, err := l.Agent()
	return agent.Integrity, err
}

func (l *Loader) agentSettings() (settings, error) { return l.load(agentKind) }

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

func (l *Loader) coordinationSettings() (settings, error) { return l.load(coordinationKind) }

// flatCoordination lifts what stands below the key.
func flatCoordination(l *layer) error {
	inner, ok := l.values[coordinationKey].(map[string]any)
	if !ok {
		return nil
	}
	delete(l.values, coordinationKey)
	merge(l.values, inner)
	l.spellings = func(at []string) [][]string {
		return [][]string{slices.Concat([]string{coordinationKey}, at)}
	}
	return nil
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

func (l *Loader) resilienceSettings() (settings, error) { return l.load(resilienceKind) }

// settings are the layers of one kind of settings, checked, lowest precedence
// first. The layers of the project hold what counts of it.
type settings struct {
	layers   []layer
	own      int // how many of them are the system's and the user's
	accepted int // how many follow that the user has accepted
	warnings []string
	leftOut  []Notice
}

// broken is what remains when one of the files cannot be used: nothing holds
// then, not even what the others say.
func (s *settings) broken() settings { return settings{warnings: s.warnings} }

// load reads and checks the files of a kind in every space.
func (l *Loader) load(k kind) (settings, error) {
	if k.shipped {
		if _, name, err := l.own[0].read(k.files[len(k.files)-1]); err != nil {
			return settings{}, fmt.Errorf("shipped settings %s: %w", name, err)
		}
	}
	var s settings
	for _, place := range l.own {
		layers, err := l.read(&s, k, place)
		if err != nil {
			return s.broken(), err
		}
		s.layers = append(s.layers, layers...)
	}
	s.own = len(s.layers)
	var err error
	project := l.project()
	byKey := !k.whole || k.merged && project.follows(k.files[0])
	if byKey {
		err = l.loadByKey(&s, k, project)
	} else {
		err = l.loadWhole(&s, k, project)
	}
	if err != nil {
		return s.broken(), err
	}
	return s, nil
}

// loadWhole adds the files of a project that count as they are.
func (l *Loader) loadWhole(s *settings, k kind, p project) error {
	for _, file := range k.files {
		places, notice := p.whole(file)
		if notice != nil {
			s.leftOut = append(s.leftOut, *notice)
		}
		for _, place := range places {
			layers, err := l.read(s, k, place)
			if err != nil {
				return err
			}
			s.layers = append(s.layers, layers...)
			s.accepted += len(layers)
		}
	}
	return nil
}

// loadByKey adds the files of a project, without the keys that do not count.
func (l *Loader) loadByKey(s *settings, k kind, p project) error {
	if p.present == nil {
		return nil
	}
	present, err := l.read(s, k, p.present)
	if err != nil {
		return err
	}
	var accepted []layer
	if p.accepted != nil {
		if accepted, err = l.read(&settings{}, k, p.accepted); err != nil {
			return err
		}
	}
	if len(present)+len(accepted) == 0 {
		return nil
	}
	rules, err := l.rulesFor(k.schema)
	if err != nil {
		return err
	}
	file := k.files[len(k.files)-1]
	_, path, _ := p.present.read(file)
	settling := settling{
		rules: rules, own: s.layers[:s.own:s.own], accepted: accepted, present: present, file: file, path: path,
		followed: l.allFollowed(p, present),
	}
	settling.settle()
	s.layers = slices.Concat(s.layers, accepted, present)
	s.accepted, s.leftOut = len(accepted), settling.notices
	return nil
}

func (l *Loader) allFollowed(p project, present []layer) bool {
	for _, file := range present {
		if !p.followed(version{data: file.source, name: file.path, file: file.file, found: true}) {
			return false
		}
	}
	return len(present) > 0
}

// read reads and checks the files of a kind in one place; warnings go to s.
func (l *Loader) read(s *settings, k kind, from place) ([]layer, error) {
	var layers []layer
	for _, file := range k.files {
		data, name, err := from.read(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("settings %s: %w", name, err)
		}
		layer, err := parseLayer(name, data)
		if err != nil {
			return nil, err
		}
		layer.file, layer.space = file, from.space()
		if err := l.check(s, layer, k.schema); err != nil {
			return nil, err
		}
		if k.canonical != nil {
			if err := k.canonical(&layer); err != nil {
				return nil, err
			}
		}
		layers = append(layers, layer)
	}
	return layers, nil
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

// rulesFor reads what a schema says about projects when it is first needed.
func (l *Loader) rulesFor(name string) (*rule, error) {
	if known, ok := l.rules.Load(name); ok {
		return known.(*rule), nil //nolint:forcetypeassert // only rules are stored
	}
	rules, err := rulesOf(name)
	if err == nil {
		l.rules.Store(name, rules)
	}
	return rules, err
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
	return mergedOf(s.layers)
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
