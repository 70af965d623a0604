package validate

import (
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/spaces/expr"
)

// told is what templates and conditions in one place can be about.
type told struct {
	names  []string               // of the data
	inputs func(name string) bool // whether a thread can have an input of this name
}

// has reports whether there can be data for one of the paths. It knows
// the members of inputs only.
func (k told) has(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		keys := strings.Split(strings.TrimPrefix(path, "event."), ".")
		if keys[0] == "inputs" && len(keys) > 1 && slices.Contains(k.names, "inputs") {
			return k.inputs(keys[1])
		}
		return slices.Contains(k.names, keys[0]) || path == "event" || path == "event.name"
	})
}

// isInput returns the name of the input that the last of the paths is about.
func (k told) isInput(paths []string) (string, bool) {
	name, ok := strings.CutPrefix(paths[len(paths)-1], "inputs.")
	return name, ok && slices.Contains(k.names, "inputs")
}

func (k told) list() string { return "there are " + strings.Join(k.names, ", ") + " and event" }

// dataTry says what data there are, or what to do about an input.
func (d *directive) dataTry(k told, paths []string) string {
	if name, ok := k.isInput(paths); ok {
		return d.declareOr(name)
	}
	return k.list()
}

// checkHookData finds templates and conditions about data that no event has which
// the hook hears.
func checkHookData(l *list, h *hook.Hook, k told, try func(told, []string) string) {
	first := once()
	templates := templatesOf(h)
	for _, path := range h.Condition.Paths() {
		templates = append(templates, []string{path})
	}
	for _, template := range templates {
		if text := orOf(template); !k.has(template) && first(text) {
			l.warnf(CodeHookData, h.Line, try(k, template), "hook %q asks for %s, which %s", h.ID, text, about(h.Event))
		}
	}
}

func about(event hook.Event) string {
	if event == "" {
		return "no event that it hears has"
	}
	return "the event " + string(event) + " has not"
}

func orOf(paths []string) string { return strings.Join(paths, " || ") }

// templatesOf are the templates in the actions of a hook.
func templatesOf(h *hook.Hook) [][]string {
	var all [][]string
	for _, a := range h.Actions {
		all = append(all, expr.Templates([]any{a.ItemID, a.SetExtends, a.Params})...)
	}
	return all
}
