package config

import (
	"slices"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// Snapshot are the settings as they were at one time: every file is read at most
// once, when it is first needed, and every kind is merged at most once. All who
// work on one call share one, so that they see one version of each file. Its values
// are shared and must not be changed. It is safe for concurrent use.
//
// The second result of its methods are warnings for a person, one line each,
// beginning with file and line. An error about the content of a file is an
// [*Error]. [Snapshot.LeftOut] tells which settings of a project do not count.
type Snapshot struct {
	loader  *Loader
	own     []place // of system and user space
	project func() project

	kinds onceCache[loaded] // by file

	agent        func() (Agent, []string, error)
	coordination func() (Coordination, []string, error)
	resilience   func() (Resilience, []string, error)
	risk         func() ([]Risk, []string, error)
	tools        func() (Tools, []string, error)
	notify       func() (Notify, []string, error)
	memory       func() (Memory, []string, error)
	store        func() (Store, []string, error)
	mirror       func() (Mirror, []string, error)
	errorRules   func() (ErrorRules, []string, error)
	hooks        func() (Hooks, []string, error)
	providers    onceCache[loadedProvider]
	names        func() ([]string, error)
}

// Read takes a snapshot.
func (l *Loader) Read() *Snapshot {
	sn := &Snapshot{loader: l}
	for _, from := range l.own {
		sn.own = append(sn.own, l.remembered(from))
	}
	sn.project = sync.OnceValue(func() project {
		p := l.project()
		if p.present != nil {
			p.present = l.remembered(p.present)
		}
		return p
	})
	sn.agent, sn.coordination = once(sn.readAgent), once(sn.readCoordination)
	sn.resilience, sn.risk = once(sn.readResilience), once(sn.readRisk)
	sn.tools, sn.notify = once(sn.readTools), once(sn.readNotify)
	sn.memory, sn.store, sn.mirror = once(sn.readMemory), once(sn.readStore), once(func() (Mirror, []string, error) { return readMirror(sn) })
	sn.errorRules, sn.hooks = once(sn.readErrorRules), once(sn.readHooks)
	sn.names = sync.OnceValues(sn.readProviderNames)
	return sn
}

// Agent reads agent.yaml.
func (sn *Snapshot) Agent() (Agent, []string, error) { return sn.agent() }

func (sn *Snapshot) readAgent() (Agent, []string, error) {
	s, err := sn.agentSettings()
	if err != nil {
		return Agent{}, s.warnings, err
	}
	return valuesOf(sn, agentKind, s, func() (agent Agent, _ []string, _ error) {
		err := s.decode(&agent)
		return agent, s.warnings, err
	})
}

// Notices are the warnings of all settings, and what of the project does not count,
// each once. A file that does not load has none: the call that needs it fails, and
// says why.
func (sn *Snapshot) Notices() []string {
	loads := []func() ([]string, error){
		func() ([]string, error) { _, w, err := sn.Agent(); return w, err },
		func() ([]string, error) { _, w, err := sn.Coordination(); return w, err },
		func() ([]string, error) { _, w, err := sn.Resilience(); return w, err },
		func() ([]string, error) { _, w, err := sn.Risk(); return w, err },
		func() ([]string, error) { _, w, err := sn.Tools(); return w, err },
		func() ([]string, error) { _, w, err := sn.Notify(); return w, err },
		func() ([]string, error) { _, w, err := sn.Memory(); return w, err },
		func() ([]string, error) { _, w, err := sn.store(); return w, err },
		func() ([]string, error) { _, w, err := sn.mirror(); return w, err },
		func() ([]string, error) { _, w, err := sn.ErrorRules(); return w, err },
		func() ([]string, error) { _, w, err := sn.Hooks(); return w, err },
	}
	names, _ := sn.ProviderNames() // the search for a provider tells its error
	for _, name := range names {
		loads = append(loads, func() ([]string, error) { _, w, err := sn.Provider(name); return w, err })
	}
	var all []string
	for _, n := range sn.LeftOut() {
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
func (sn *Snapshot) Integrity() (trust.Settings, error) {
	agent, _, err := sn.Agent()
	return agent.Integrity, err
}

func (sn *Snapshot) agentSettings() (settings, error) { return sn.load(agentKind) }

// Coordination reads coordination.yaml. In each space config/coordination.yaml,
// where the original system had it, is read before
// config/agent/coordination.yaml. Either may have its content below a key
// "coordination".
func (sn *Snapshot) Coordination() (Coordination, []string, error) { return sn.coordination() }

func (sn *Snapshot) readCoordination() (Coordination, []string, error) {
	s, err := sn.coordinationSettings()
	if err != nil {
		return Coordination{}, s.warnings, err
	}
	return valuesOf(sn, coordinationKind, s, func() (c Coordination, _ []string, _ error) {
		err := s.decode(&c)
		c.WaitThreads.DefaultTimeout = min(c.WaitThreads.DefaultTimeout, c.WaitThreads.MaxTimeout)
		return c, s.warnings, err
	})
}

// coordinationKey is the key that the content of coordination.yaml may stand
// below.
const coordinationKey = "coordination"

func (sn *Snapshot) coordinationSettings() (settings, error) { return sn.load(coordinationKind) }

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
func (sn *Snapshot) Resilience() (Resilience, []string, error) { return sn.resilience() }

func (sn *Snapshot) readResilience() (Resilience, []string, error) {
	s, err := sn.resilienceSettings()
	if err != nil {
		return Resilience{}, s.warnings, err
	}
	return valuesOf(sn, resilienceKind, s, func() (r Resilience, _ []string, _ error) {
		if err := s.decode(&r); err != nil {
			return r, s.warnings, err
		}
		err := r.readLimits(&s)
		return r, s.warnings, err
	})
}

func (sn *Snapshot) resilienceSettings() (settings, error) { return sn.load(resilienceKind) }
