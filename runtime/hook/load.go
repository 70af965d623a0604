package hook

import (
	"fmt"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// Source is where hooks are read from: the settings, or what a start has decided.
type Source interface {
	Hooks() (config.Hooks, []string, error)
}

// Load reads the hooks of the settings of all spaces: every layer but that of
// directives. Warnings are for a person, one line each, beginning with file and
// line. A fault of a hook is an [*Error], one of a file a [*config.Error].
// The gate decides whether a file of the user or the project may be used; nil lets
// everything in, for those who only look.
func Load(settings Source, gate *trust.Gate) (Set, []string, error) {
	files, warnings, err := settings.Hooks()
	if err != nil {
		return Set{}, warnings, err
	}
	for _, file := range files.Files {
		if gate == nil {
			break
		}
		decision, err := gate.Check(file)
		if err != nil {
			return Set{}, warnings, err
		}
		if decision.Warning != "" {
			warnings = append(warnings, decision.Warning)
		}
	}
	var all []*Hook
	for _, part := range []struct {
		layer Layer
		hooks []config.Hook
	}{
		{LayerUser, files.User},
		{LayerBuiltin, files.Builtin},
		{LayerProject, files.Project},
		{LayerInfra, files.Infra},
	} {
		definitions := make([]definition, len(part.hooks))
		for i, h := range part.hooks {
			definitions[i] = definition{Hook: h.Hook, condition: h.Condition, layer: part.layer, path: h.Path, lineOf: h.LineOf}
		}
		hooks, err := check(definitions)
		if err != nil {
			return Set{}, warnings, err
		}
		all = append(all, hooks...)
	}
	return newSet(all), warnings, nil
}

// DirectiveHooks are the hooks that one directive declares.
type DirectiveHooks struct {
	Directive string // id
	Path      string // of its file
	Hooks     []item.Hook
}

// ofDirective makes hooks of what a directive declares. One without an id is
// named by the directive and its number.
func ofDirective(d DirectiveHooks) ([]*Hook, error) {
	definitions := make([]definition, len(d.Hooks))
	for i, h := range d.Hooks {
		def := definition{
			Hook: h, layer: LayerDirective, path: d.Path,
			lineOf: func(...string) int { return h.Line }, // the parser keeps no other
		}
		if def.ID == "" {
			def.ID = fmt.Sprintf("%s#%d", d.Directive, i+1)
		}
		var err error
		if def.condition, err = conditionOf(h); err != nil {
			return nil, def.errorAt("", "%v", err)
		}
		definitions[i] = def
	}
	return check(definitions)
}

// conditionOf is what <condition> and <when> say together.
func conditionOf(h item.Hook) (expr.Condition, error) {
	conditions, err := expr.FromXML(h.Conditions)
	if err != nil || h.When == "" {
		return conditions, err
	}
	when, err := expr.ParseWhen(h.When)
	if err != nil {
		return when, fmt.Errorf("<when>: %w", err)
	}
	return conditions.And(when), nil
}

// check makes hooks of the definitions of one file.
func check(definitions []definition) ([]*Hook, error) {
	hooks := make([]*Hook, len(definitions))
	first := make(map[string]int, len(definitions)) // lines
	for i := range definitions {
		d := &definitions[i]
		if line, twice := first[d.ID]; twice {
			return nil, d.errorAt("id", "the id is taken by the hook on line %d", line)
		}
		first[d.ID] = d.Line
		h, err := d.hook()
		if err != nil {
			return nil, err
		}
		hooks[i] = h
	}
	return hooks, nil
}
