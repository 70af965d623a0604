package hook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Set is the hooks of a thread in the order they run. The zero value has none.
// Sets do not change; methods return new ones.
type Set struct {
	hooks      []*Hook
	suppressed []string // ids of hooks and items
}

func newSet(hooks []*Hook) Set {
	hooks = slices.Clone(hooks)
	slices.SortStableFunc(hooks, func(a, b *Hook) int { return cmp.Compare(a.Layer, b.Layer) })
	return Set{hooks: hooks}
}

// WithDirectives adds the hooks of the directives of an extends chain, root
// first. A fault of one is an [*Error].
func (s Set) WithDirectives(chain ...DirectiveHooks) (Set, error) {
	all := slices.Clone(s.hooks)
	for _, d := range chain {
		hooks, err := ofDirective(d)
		if err != nil {
			return Set{}, err
		}
		all = append(all, hooks...)
	}
	merged := newSet(all)
	merged.suppressed = s.suppressed
	return merged, nil
}

// Suppress leaves out the hooks with these ids, and of the context events what
// injects the items with these ids.
func (s Set) Suppress(ids ...string) Set {
	s.suppressed = slices.Concat(s.suppressed, ids)
	return s
}

// All lists the hooks in the order they run, suppressed ones included.
func (s Set) All() []*Hook { return slices.Clone(s.hooks) }

// Hears reports whether any hook is about an event.
func (s Set) Hears(event Event) bool {
	return slices.ContainsFunc(s.hooks, func(h *Hook) bool { return h.hears(event) })
}

// matching lists the hooks that an event with these data fires. Data come from
// withEvent.
func (s Set) matching(event Event, data map[string]any, firing []string) []*Hook {
	var match []*Hook
	for _, h := range s.hooks {
		if s.barred(h, event, data, firing) == "" && h.Condition.Eval(data) {
			match = append(match, h)
		}
	}
	return match
}

// barred says why an event does not fire a hook, whatever its condition; empty
// when nothing but that is in its way.
func (s Set) barred(h *Hook, event Event, data map[string]any, firing []string) string {
	switch {
	case !h.hears(event) && h.Event == "":
		return h.deaf(event)
	case !h.hears(event):
		return fmt.Sprintf("it hears %s", h.Event)
	case h.Layer != LayerInfra && slices.Contains(s.suppressed, h.ID):
		return "suppressed by its id"
	case slices.Contains(firing, h.ID):
		return "a hook of this id started the thread, or one above it"
	case s.silenced(h, event, data):
		return "suppressed by the id of what it injects"
	}
	return ""
}

// deaf says why a hook without an event is not about this one.
func (h *Hook) deaf(event Event) string {
	switch {
	case h.extends():
		return fmt.Sprintf("it hears %s, as it names what is extended", EventResolveExtends)
	case event == EventResolveExtends:
		return "it does not name what is extended"
	case h.Decides() && event.Kind() != KindControl:
		return fmt.Sprintf("at %s nothing can be decided", event)
	}
	return fmt.Sprintf("its condition cannot hold at %s", event)
}

// silenced reports whether all that the hook would inject is suppressed.
func (s Set) silenced(h *Hook, event Event, data map[string]any) bool {
	return !slices.ContainsFunc(h.Actions, func(a item.Action) bool {
		id, _ := expr.ExpandText(a.ItemID, data)
		return !s.suppresses(h, event, id)
	})
}

// suppresses reports whether the item with this id is not to be injected.
func (s Set) suppresses(h *Hook, event Event, itemID string) bool {
	return event.Kind() == KindContext && h.Layer != LayerInfra && itemID != "" && slices.Contains(s.suppressed, itemID)
}

// ResolveExtends asks the hooks what a directive extends; the first one that
// matches and names something wins. Hook is nil when none does: the directive's
// own extends holds then. Data are those of [EventResolveExtends]. It is for the
// caller to record that the hook has fired.
func (s Set) ResolveExtends(data map[string]any) (target string, h *Hook, warnings []string) {
	data = withEvent(EventResolveExtends, data)
	for _, h := range s.matching(EventResolveExtends, data, nil) {
		for _, a := range h.Actions {
			id, missing := expr.ExpandText(a.SetExtends, data)
			if len(missing) > 0 {
				warnings = append(warnings, fmt.Sprintf("%s: hook %q: %s", h.Source(), item.Shown(h.ID), lacking(missing)))
			}
			if err := item.CheckID(id); err != nil {
				warnings = append(warnings, fmt.Sprintf("%s: hook %q: set_extends: %v", h.Source(), item.Shown(h.ID), err))
				continue
			}
			return id, h, warnings
		}
	}
	return "", nil, warnings
}

// lacking says that templates had no data.
func lacking(missing []string) string {
	return "there is nothing to put in for ${" + strings.Join(missing, "}, ${") + "}"
}

// withEvent adds what all events have: event, which is the data and their name.
func withEvent(event Event, data map[string]any) map[string]any {
	named := make(map[string]any, len(data)+1)
	all := make(map[string]any, len(data)+1)
	for key, value := range data {
		named[key], all[key] = value, value
	}
	named["name"] = string(event)
	all["event"] = named
	return all
}
