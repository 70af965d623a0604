package validate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// checkHooks looks at the directive's own hooks, and whether those it inherits
// may do what they do in its threads.
func checkHooks(l *list, d *directive) {
	lines := map[string]int{}
	for i, written := range d.doc.Hooks {
		if line, twice := lines[written.ID]; twice && written.ID != "" {
			l.errorf(CodeHookTwice, written.Line, "give it an id of its own", "the hook id %s is taken by the hook on line %d", written.ID, line)
		} else {
			lines[written.ID] = written.Line
		}
		h, err := hookOf(d.chain[0], i, written)
		if wrong, ok := errors.AsType[*hook.Error](err); ok {
			l.errorf(codeOf(written), wrong.Line, "", "hook %q: %s", wrong.Hook, wrong.Reason)
			continue
		}
		if by := d.silences(h); by != "" {
			l.warnf(CodeHookSuppressed, h.Line, "remove it, or the <suppress>", "hook %q never fires: directive %s suppresses it", h.ID, by)
			continue
		}
		d.checkActions(l, h)
		checkHookData(l, h, d.toldTo(h), d.dataTry)
	}
	for _, link := range d.ancestors() {
		for i, written := range link.Doc.Hooks {
			if h, err := hookOf(link, i, written); err == nil && d.silences(h) == "" {
				d.checkAllowed(l, d.line(""), h, fmt.Sprintf("the inherited hook %q (%s)", h.ID, h.Source()))
			}
		}
	}
}

// silences is the directive of the chain that suppresses a hook. Hooks that choose what is
// extended come before the chain: for them only the directive itself counts.
func (d *directive) silences(h *hook.Hook) string {
	if slices.Contains(h.Events(), hook.EventResolveExtends) && !slices.Contains(d.doc.Context.Suppress, h.ID) {
		return ""
	}
	return d.suppressor(h.ID)
}

// hookOf gives a hook of a directive its meaning, apart from the others.
func hookOf(of prompt.Link, i int, written item.Hook) (*hook.Hook, error) {
	if written.ID == "" {
		written.ID = fmt.Sprintf("%s#%d", of.ID, i+1)
	}
	set, err := hook.Set{}.WithDirectives(hook.DirectiveHooks{Directive: of.ID, Path: of.Path, Hooks: []item.Hook{written}})
	if err != nil {
		return nil, err
	}
	return set.All()[0], nil
}

// codeOf says which part of a hook is wrong.
func codeOf(h item.Hook) Code {
	_, conditions := expr.FromXML(h.Conditions)
	var when, event error
	if h.When != "" {
		_, when = expr.ParseWhen(h.When)
	}
	if h.Event != "" {
		_, event = hook.ParseEvent(h.Event)
	}
	switch {
	case conditions != nil || when != nil:
		return CodeHookCondition
	case event != nil:
		return CodeHookEvent
	case slices.ContainsFunc(h.Actions, func(a item.Action) bool { return a.ItemID == hook.ControlID }):
		return CodeHookVerdict
	default:
		return CodeHookAction
	}
}

// checkActions looks whether what the actions name is there and may be used.
func (d *directive) checkActions(l *list, h *hook.Hook) {
	checkActionItems(l, d.world, h)
	d.checkAllowed(l, h.Line, h, fmt.Sprintf("hook %q", h.ID))
}

// checkActionItems finds actions about items that do not exist.
func checkActionItems(l *list, w *world, h *hook.Hook) {
	for _, a := range h.Actions {
		kind, id := target(a)
		if id == "" {
			continue
		}
		if isSummary(a) {
			continue
		}
		if err := w.exists(kind, id); err != nil {
			message, try := missing(err)
			l.errorf(CodeHookItem, h.Line, try, "hook %q: %s", h.ID, message)
		}
	}
}

// target is the item that an action is about; empty when that is not known
// before it runs, or when there is none.
func target(a item.Action) (item.Kind, string) {
	kind, id := item.Kind(a.ItemType), a.ItemID
	if a.SetExtends != "" {
		kind, id = item.Directive, a.SetExtends
	}
	if strings.Contains(id, "${") || strings.HasPrefix(id, hook.InternalPrefix) || a.Primary == "search" {
		return "", ""
	}
	return kind, id
}

// checkAllowed finds actions that the directive's threads have no capability for.
func (d *directive) checkAllowed(l *list, line int, h *hook.Hook, who string) {
	for _, a := range h.Actions {
		kind, id := target(a)
		if id == "" || a.SetExtends != "" || isSummary(a) {
			continue
		}
		if kind == "" {
			found, err := d.Resolver.FindAny(id)
			if err != nil {
				continue
			}
			kind = found.Kind
		}
		if isContext(h, a, kind) {
			continue
		}
		if required := d.lacks(a.Primary, kind, id); required != "" {
			l.errorf(CodeHookCapability, line, grants(a.Primary, kind, id), "%s needs the capability %s", who, required)
		}
	}
}

// isSummary reports whether an action has the thread summed up. That is no item, and
// needs no capability.
func isSummary(a item.Action) bool {
	return a.ItemID == action.ThreadSummaryID && a.Primary == permission.Execute && a.ItemType != string(item.Directive)
}

// isContext reports whether an action makes knowledge part of a prompt, for which
// a thread needs no capability.
func isContext(h *hook.Hook, a item.Action, kind item.Kind) bool {
	elsewhere := slices.ContainsFunc(h.Events(), func(e hook.Event) bool { return e.Kind() != hook.KindContext })
	return !elsewhere && kind == item.Knowledge && len(a.Params) == 0 && (a.Primary == "fetch" || a.Primary == "execute")
}

// toldTo is what a hook of the directive can be told.
func (d *directive) toldTo(h *hook.Hook) told {
	return told{names: h.Data(), inputs: func(name string) bool { return d.declares(name) || isCarried(h, name) }}
}

// isCarried reports whether an input is one that a thread has which continues
// another, whatever its directive declares. At its first two events there is no
// such thread.
func isCarried(h *hook.Hook, input string) bool {
	late := slices.ContainsFunc(h.Events(), func(e hook.Event) bool {
		return e != hook.EventResolveExtends && e != hook.EventThreadStarted
	})
	return late && (input == handoff.InputPreviousThread || input == handoff.InputPreviousSummary)
}
