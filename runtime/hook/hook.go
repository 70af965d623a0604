package hook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Layer is where a hook comes from. Lower ones run first.
type Layer int

// The layers.
const (
	LayerUser Layer = iota
	LayerDirective
	LayerBuiltin
	LayerProject
	LayerInfra
)

func (l Layer) String() string {
	return [...]string{"user", "directive", "builtin", "project", "infrastructure"}[l]
}

// Positions of what a hook of a context event gives, around the rest of it.
const (
	Before = "before"
	After  = "after"
)

const (
	// InternalPrefix begins the ids of tools that only the layers of the system may
	// use, [ControlID] excepted.
	InternalPrefix = "rye/agent/threads/internal/"
	// ControlID is the tool by which a hook decides: its param action is the verdict.
	ControlID = InternalPrefix + "control"
)

// DefaultTimeout is how long a hook may take that does not say so itself.
const DefaultTimeout = 60 * time.Second

// maxTimeout is the longest timeout in seconds, as the schema of settings has it.
const maxTimeout = 1_000_000

// Hook is a hook that was found valid.
type Hook struct {
	ID          string
	Event       Event // empty: see [Hook.Events]
	Layer       Layer
	Path        string // of the file it is defined in
	Line        int    // from 1
	Description string
	Condition   expr.Condition
	Position    string // Before or After
	Wrap        bool   // whether its text is put into an element that names it
	Timeout     time.Duration
	Required    bool          // the thread does not start when it fails
	Actions     []item.Action // never empty
}

// Exempt reports whether the hook is part of the program, and its actions need
// no capabilities of the thread.
func (h *Hook) Exempt() bool { return h.Layer == LayerBuiltin || h.Layer == LayerInfra }

// Source is file:line of the definition.
func (h *Hook) Source() string { return fmt.Sprintf("%s:%d", h.Path, h.Line) }

// Decides reports whether an action of the hook is a decision.
func (h *Hook) Decides() bool {
	return slices.ContainsFunc(h.Actions, func(a item.Action) bool { return a.ItemID == ControlID })
}

// hears reports whether the hook is about an event: the one it names, else every one
// at which it can do something and its condition can hold.
func (h *Hook) hears(event Event) bool {
	switch {
	case h.Event != "":
		return h.Event == event
	case h.extends() != (event == EventResolveExtends):
		return false
	case h.Decides() && event.Kind() != KindControl:
		return false
	}
	return h.Condition.CouldHold(withEvent(event, nil), func(path string) bool { return path != "event.name" })
}

// Events lists the events that the hook is about.
func (h *Hook) Events() []Event {
	return slices.DeleteFunc(Events(), func(e Event) bool { return !h.hears(e) })
}

// extends reports whether the hook names what a directive extends, as it does at
// [EventResolveExtends] only.
func (h *Hook) extends() bool {
	return slices.ContainsFunc(h.Actions, func(a item.Action) bool { return a.SetExtends != "" })
}

// Error says what is wrong with the definition of a hook.
type Error struct {
	Path   string
	Line   int // from 1
	Hook   string
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d: hook %q: %s", e.Path, e.Line, item.Shown(e.Hook), e.Reason)
}

// definition is a hook as it is written, and where.
type definition struct {
	item.Hook
	condition expr.Condition
	layer     Layer
	path      string
	lineOf    func(keys ...string) int // of a value within the hook
}

func (d *definition) errorAt(key, format string, args ...any) error {
	return &Error{Path: d.path, Line: d.lineOf(strings.Fields(key)...), Hook: d.ID, Reason: fmt.Sprintf(format, args...)}
}

// hook checks the definition and makes a hook of it.
func (d *definition) hook() (*Hook, error) {
	h := &Hook{
		ID: d.ID, Layer: d.layer, Path: d.path, Line: d.Line, Description: d.Description, Condition: d.condition,
		Position: d.Position, Wrap: d.Wrap == nil || *d.Wrap, Timeout: DefaultTimeout, Required: d.Required, Actions: d.Actions,
	}
	switch {
	case d.ID == "":
		return nil, d.errorAt("id", "id is missing")
	case d.Event != "":
		event, err := ParseEvent(d.Event)
		if err != nil {
			return nil, d.errorAt("event", "%v", err)
		}
		h.Event = event
	case d.When == "":
		return nil, d.errorAt("event", "event is missing")
	}
	switch d.Position {
	case Before, After:
	case "":
		h.Position = Before
	default:
		return nil, d.errorAt("position", "position %q is unknown; want %s or %s", d.Position, Before, After)
	}
	if h.Required && h.Event.Kind() != KindContext {
		return nil, d.errorAt("required", "required is for hooks of %s: they run before a thread has begun", oneOf(contextEvents()))
	}
	if d.Timeout > maxTimeout {
		return nil, d.errorAt("timeout", "timeout is %g; a hook may take %d seconds at most", d.Timeout, maxTimeout)
	}
	if d.Timeout > 0 {
		h.Timeout = time.Duration(d.Timeout * float64(time.Second))
	}
	for i, a := range d.Actions {
		if reason := d.badAction(h, a); reason != "" {
			return nil, d.errorAt(d.placeOf(i), "%s", reason)
		}
	}
	return h, nil
}

// placeOf is where the action with an index stands in YAML.
func (d *definition) placeOf(i int) string {
	if len(d.Actions) == 1 {
		return "action"
	}
	return fmt.Sprintf("actions %d", i)
}

// badAction says what is wrong with an action, as far as its templates allow.
func (d *definition) badAction(h *Hook, a item.Action) string {
	switch {
	case a.SetExtends != "" && h.Event != "" && h.Event != EventResolveExtends:
		return fmt.Sprintf("set_extends works at the event %s only", EventResolveExtends)
	case a.SetExtends != "" && (a.Primary != "" || a.ItemID != "" || a.ItemType != ""):
		return "set_extends stands alone in its action"
	case a.SetExtends != "":
		return badID(a.SetExtends)
	case h.Event == EventResolveExtends || h.extends():
		return fmt.Sprintf("at the event %s a hook does nothing but set_extends", EventResolveExtends)
	}
	if !slices.Contains([]string{"execute", "fetch", "search", "sign"}, a.Primary) {
		return fmt.Sprintf("primary is %q; want execute, fetch, search or sign", a.Primary)
	}
	if a.ItemType != "" {
		if _, err := item.ParseKind(a.ItemType); err != nil {
			return err.Error()
		}
	}
	if reason := badItem(h, a); reason != "" {
		return reason
	}
	if a.ItemID == ControlID {
		return badControl(h, a)
	}
	return ""
}

// badItem says what is wrong with the item of an action.
func badItem(h *Hook, a item.Action) string {
	if a.ItemID == "" {
		if a.Primary == "search" || a.Primary == "fetch" && a.Params["query"] != nil {
			return ""
		}
		return "item_id is missing"
	}
	if reason := badID(a.ItemID); reason != "" {
		return reason
	}
	if strings.HasPrefix(a.ItemID, InternalPrefix) && a.ItemID != ControlID && !h.Exempt() {
		return fmt.Sprintf("%s is for hooks of the system only; here only %s is", a.ItemID, ControlID)
	}
	return ""
}

func badControl(h *Hook, a item.Action) string {
	if a.Primary != "execute" {
		return fmt.Sprintf("%s is executed, not %s", ControlID, a.Primary)
	}
	if text, _ := a.Params[delayParam].(string); !hasTemplate(text) {
		if _, err := delayOf(a.Params); err != nil {
			return err.Error()
		}
	}
	if h.Event == "" {
		return ""
	}
	name, _ := a.Params[verdictParam].(string)
	if hasTemplate(name) && h.Event.Kind() == KindControl {
		return ""
	}
	if _, err := verdictOf(h.Event, a.Params); err != nil {
		return err.Error()
	}
	return ""
}

// badID says what is wrong with an item id that has no templates.
func badID(id string) string {
	if hasTemplate(id) {
		return ""
	}
	if err := item.CheckID(id); err != nil {
		return err.Error()
	}
	return ""
}

func hasTemplate(s string) bool { return strings.Contains(s, "${") }
