package config

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

const hookConditionsFile = "agent/hook_conditions.yaml"

// Hooks are the hooks of settings files, in the order they stand there.
type Hooks struct {
	User    []Hook // hooks.yaml of the user space
	Project []Hook // hooks.yaml of the project space
	Builtin []Hook // builtin_hooks and context_hooks of the system's hook_conditions.yaml
	Infra   []Hook // infra_hooks of it
	// Files are the files of User and Project that hold hooks, for who asks
	// whether they may be used.
	Files []trust.Subject `json:"-"`
}

// Hook is a hook as a settings file has it. Its event and what its actions mean
// are for package hook to judge.
type Hook struct {
	item.Hook // without Conditions and When
	Condition expr.Condition
	Path      string

	file layer
	at   []string
}

// LineOf is the line of the value at a path of keys within the hook, or of the
// innermost one of them that is written. Of a hook that was handed over it is the
// line of the hook.
func (h Hook) LineOf(keys ...string) int {
	if h.file.root == nil {
		return h.Line
	}
	at := h.at
	for _, key := range keys {
		at = below(at, key)
	}
	return h.file.lineOf(at)
}

// Hooks reads hooks.yaml of the user and the project space, and the system's
// hook_conditions.yaml. One of another space is a warning: what the runtime
// itself relies on is part of the program.
func (sn *Snapshot) Hooks() (Hooks, []string, error) { return sn.hooks() }

func (sn *Snapshot) readHooks() (Hooks, []string, error) {
	s, err := sn.load(hooksKind)
	if err != nil {
		return Hooks{}, s.warnings, err
	}
	hooks, warnings, err := valuesOf(sn, hooksKind, s, func() (Hooks, []string, error) {
		hooks, warnings, err := s.hooks()
		if err == nil {
			err = sn.hookConditions(&hooks)
		}
		return hooks, slices.Clip(warnings), err // more may be added
	})
	if err != nil {
		return Hooks{}, warnings, err
	}
	return hooks, append(warnings, sn.strayConditions()...), nil
}

func (s settings) hooks() (hooks Hooks, warnings []string, err error) {
	for _, file := range s.layers {
		into := &hooks.User
		if file.space == item.Project {
			into = &hooks.Project
		}
		if *into, err = file.hooks("hooks"); err != nil {
			return hooks, s.warnings, err
		}
		if len(*into) > 0 {
			hooks.Files = append(hooks.Files, trust.Subject{
				ID: file.file, Space: file.space, Path: file.path, Ext: path.Ext(file.file), Content: file.source,
			})
		}
		for _, h := range *into {
			if _, given := h.values()["layer"]; given {
				s.warnings = append(s.warnings, file.warning(below(h.at, "layer"), "not used; the layer of a hook follows from the file it stands in"))
			}
		}
	}
	return hooks, s.warnings, nil
}

// hookConditions adds the hooks of the system space.
func (sn *Snapshot) hookConditions(to *Hooks) error {
	file, err := sn.shipped(kind{}, sn.own[0], hookConditionsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if to.Builtin, err = file.hooks("builtin_hooks", "context_hooks"); err != nil {
		return err
	}
	to.Infra, err = file.hooks("infra_hooks")
	return err
}

// strayConditions warns of files that only the system space may have.
func (sn *Snapshot) strayConditions() (warnings []string) {
	places := sn.own[1:]
	if present := sn.project().present; present != nil {
		places = slices.Concat(places, []place{present})
	}
	for _, place := range places {
		if _, name, err := place.read(hookConditionsFile); !errors.Is(err, fs.ErrNotExist) {
			warnings = append(warnings, name+": not used; this file is read from the system space only, your own hooks belong into "+hooksKind.files[0])
		}
	}
	return warnings
}

// hooks reads the lists of hooks below the given keys.
func (l layer) hooks(keys ...string) ([]Hook, error) {
	var all []Hook
	for _, key := range keys {
		list, ok := l.values[key].([]any)
		if !ok && l.values[key] != nil {
			return nil, l.errorAt([]string{key}, "want a list of hooks")
		}
		for i := range list {
			h := Hook{Path: l.path, file: l, at: []string{key, strconv.Itoa(i)}}
			if err := h.read(); err != nil {
				return nil, err
			}
			all = append(all, h)
		}
	}
	return all, nil
}

// writtenHook is a hook in YAML, without its condition.
type writtenHook struct {
	ID          string          `yaml:"id"`
	Event       string          `yaml:"event"`
	Position    string          `yaml:"position"`
	Wrap        *bool           `yaml:"wrap"`
	Timeout     float64         `yaml:"timeout"` // seconds
	Required    bool            `yaml:"required"`
	Description string          `yaml:"description"`
	Action      *writtenAction  `yaml:"action"`
	Actions     []writtenAction `yaml:"actions"`
}

type writtenAction struct {
	Primary    string         `yaml:"primary"`
	ItemType   string         `yaml:"item_type"`
	ItemID     string         `yaml:"item_id"`
	SetExtends string         `yaml:"set_extends"`
	Params     map[string]any `yaml:"params"`
}

// values are what the file says of the hook.
func (h *Hook) values() map[string]any {
	list, _ := h.file.values[h.at[0]].([]any) // hooks made h of its elements
	i, _ := strconv.Atoi(h.at[1])
	values, _ := list[i].(map[string]any)
	return values
}

func (h *Hook) read() error {
	values := h.values()
	if values == nil {
		return h.file.errorAt(h.at, "want a hook: id, event and action")
	}
	var w writtenHook
	if err := nodeOf(values).Decode(&w); err != nil {
		return h.file.errorAt(h.at, "%s", item.ShownIn(err.Error()))
	}
	var err error
	if h.Condition, err = expr.ParseCondition(values["condition"]); err != nil {
		return h.file.conditionError(below(h.at, "condition"), err)
	}
	switch {
	case w.Action != nil && len(w.Actions) > 0:
		return h.file.errorAt(below(h.at, "actions"), "the hook has action too; keep one")
	case w.Action != nil:
		w.Actions = []writtenAction{*w.Action}
	case len(w.Actions) == 0:
		return h.file.errorAt(h.at, "action: missing; want what the hook does")
	}
	h.Hook = item.Hook{
		ID: w.ID, Event: w.Event, Position: w.Position, Wrap: w.Wrap, Timeout: w.Timeout, Required: w.Required, Description: w.Description,
		Line: h.LineOf(),
	}
	for _, a := range w.Actions {
		h.Actions = append(h.Actions, item.Action(a))
	}
	return nil
}
