package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// Decided are the settings that the start of a thread has decided. The process of
// the thread is handed them and reads no settings file, so that it goes by what its
// starter has checked, whatever becomes of the files in between. It is safe for
// concurrent use; what it returns is shared and must not be changed.
type Decided struct {
	said   decided
	hooks  func() (Hooks, []string, error)
	tools  func() (Tools, []string, error)
	memory func() (Memory, []string, error)
	errors func() (ErrorRules, []string, error)
	files  func() *Snapshot
}

// decided is what is handed over. The parts that most threads never need are read
// when they are needed.
type decided struct {
	Form         string          `json:"form"` // of the types that are written here
	Agent        Agent           `json:"agent"`
	Coordination Coordination    `json:"coordination"`
	Resilience   Resilience      `json:"resilience"`
	Hooks        part            `json:"hooks"`
	ErrorRules   part            `json:"error_rules"`
	Tools        part            `json:"tools"`
	Memory       part            `json:"memory"`
	Providers    map[string]part `json:"providers"` // by name
}

// part is one kind of settings, or why it cannot be used.
type part struct {
	Value    json.RawMessage `json:"value,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
	Fault    string          `json:"fault,omitempty"`
}

// Decide writes down the settings for the process of a thread, without those that
// only a start needs. The caller has asked the trust gate about the files of hooks.
// The result is shared and must not be changed.
func (sn *Snapshot) Decide() ([]byte, error) {
	write := func() answer[[]byte] {
		data, err := sn.decide()
		return answerOf(data, nil, err)
	}
	source, own := sn.ownSource()
	if !own {
		a := write()
		return a.value, a.err
	}
	a := sn.loader.decided.get("", source, write)
	return a.value, a.err
}

// ownSource is the text of all files of the user's, where nothing but those and what
// is shipped count, and all of them can be used.
func (sn *Snapshot) ownSource() (source string, own bool) {
	names, err := sn.ProviderNames()
	if err != nil {
		return "", false
	}
	_, stray, err := sn.Hooks() // a file that does not count is warned of
	if err != nil {
		return "", false
	}
	kinds := []kind{agentKind, coordinationKind, resilienceKind, toolsKind, memoryKind, hooksKind, errorKind}
	for _, name := range names {
		kinds = append(kinds, providerKind(name))
	}
	parts := slices.Concat(names, stray)
	for _, k := range kinds {
		s, err := sn.load(k)
		text, own := s.ownSource()
		if err != nil || !own {
			return "", false
		}
		parts = append(parts, text)
	}
	return fmt.Sprintf("%q", parts), true
}

func (sn *Snapshot) decide() ([]byte, error) {
	said := decided{Form: formOfDecided}
	var err error
	if said.Agent, _, err = sn.Agent(); err != nil {
		return nil, err
	}
	if said.Coordination, _, err = sn.Coordination(); err != nil {
		return nil, err
	}
	if said.Resilience, _, err = sn.Resilience(); err != nil {
		return nil, err
	}
	names, err := sn.ProviderNames()
	if err != nil {
		return nil, err
	}
	said.Providers = make(map[string]part, len(names))
	for _, name := range names {
		if said.Providers[name], err = partOf(sn.Provider(name)); err != nil {
			return nil, err
		}
	}
	if said.Hooks, err = partOf(sn.Hooks()); err != nil {
		return nil, err
	}
	if said.ErrorRules, err = partOf(sn.ErrorRules()); err != nil {
		return nil, err
	}
	if said.Tools, err = partOf(sn.Tools()); err != nil {
		return nil, err
	}
	if said.Memory, err = partOf(sn.Memory()); err != nil {
		return nil, err
	}
	return json.Marshal(said)
}

func partOf[T any](value T, warnings []string, fault error) (part, error) {
	p := part{Warnings: warnings}
	var err error
	if fault != nil { // for the thread to tell, if it comes to need them
		p.Fault = fault.Error()
	} else {
		p.Value, err = json.Marshal(value)
	}
	return p, err
}

// HashDecided is what the thread.json of a thread says of what its process is
// handed.
func HashDecided(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ErrOtherForm says that settings were decided by a program whose settings have
// other keys. The files have to be read.
var ErrOtherForm = errors.New("the settings were decided by another version of the program")

// ReadDecided reads what [Snapshot.Decide] has written. Scripts of scripted
// providers, which are no settings, are read through the loader.
func (l *Loader) ReadDecided(data []byte) (*Decided, error) {
	d := &Decided{files: sync.OnceValue(l.Read)}
	var form struct{ Form string }
	if err := json.Unmarshal(data, &form); err != nil {
		return nil, fmt.Errorf("settings that were handed over: %w", err)
	}
	if form.Form != formOfDecided {
		return nil, ErrOtherForm
	}
	if err := json.Unmarshal(data, &d.said); err != nil {
		return nil, fmt.Errorf("settings that were handed over: %w", err)
	}
	d.hooks = once(func() (Hooks, []string, error) {
		hooks, warnings, err := valueOf[Hooks](d.said.Hooks)
		if err == nil {
			err = hooks.plain()
		}
		return hooks, warnings, err
	})
	d.tools = once(func() (Tools, []string, error) { return valueOf[Tools](d.said.Tools) })
	d.memory = once(func() (Memory, []string, error) { return valueOf[Memory](d.said.Memory) })
	d.errors = once(func() (ErrorRules, []string, error) { return valueOf[ErrorRules](d.said.ErrorRules) })
	return d, nil
}

func valueOf[T any](p part) (value T, warnings []string, err error) {
	if p.Fault != "" {
		return value, p.Warnings, errors.New(p.Fault)
	}
	dec := json.NewDecoder(bytes.NewReader(p.Value))
	dec.UseNumber()
	return value, p.Warnings, dec.Decode(&value)
}

// plain gives the numbers among the parameters of actions their types.
func (h *Hooks) plain() error {
	for _, hook := range slices.Concat(h.User, h.Project, h.Builtin, h.Infra) {
		for _, action := range hook.Actions {
			if action.Params == nil {
				continue
			}
			if _, err := item.PlainNumbers(action.Params); err != nil {
				return err
			}
		}
	}
	return nil
}

// Agent is agent.yaml.
func (d *Decided) Agent() (Agent, []string, error) { return d.said.Agent, nil, nil }

// Integrity is how strictly signatures are taken.
func (d *Decided) Integrity() (trust.Settings, error) { return d.said.Agent.Integrity, nil }

// Coordination is coordination.yaml.
func (d *Decided) Coordination() (Coordination, []string, error) {
	return d.said.Coordination, nil, nil
}

// Resilience is resilience.yaml.
func (d *Decided) Resilience() (Resilience, []string, error) { return d.said.Resilience, nil, nil }

// Hooks are the hooks of all settings files. The trust gate was asked about those.
func (d *Decided) Hooks() (Hooks, []string, error) { return d.hooks() }

// Tools is tools.yaml.
func (d *Decided) Tools() (Tools, []string, error) { return d.tools() }

// Memory is memory.yaml.
func (d *Decided) Memory() (Memory, []string, error) { return d.memory() }

// ErrorRules are error_classification.yaml of all spaces.
func (d *Decided) ErrorRules() (ErrorRules, []string, error) { return d.errors() }

// ProviderNames lists the model providers, sorted.
func (d *Decided) ProviderNames() ([]string, error) {
	return slices.Sorted(maps.Keys(d.said.Providers)), nil
}

// Provider is a model provider. Without such a provider the error is a
// [*NotFoundError].
func (d *Decided) Provider(name string) (Provider, []string, error) {
	said, known := d.said.Providers[name]
	if !known {
		names, _ := d.ProviderNames()
		return Provider{Name: name}, nil, &NotFoundError{Provider: name, Known: names}
	}
	return valueOf[Provider](said)
}

// File is [Snapshot.File].
func (d *Decided) File(rel string) ([]byte, string, error) { return d.files().File(rel) }
