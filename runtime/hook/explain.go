package hook

import (
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Explanation says what an event would do with one hook.
type Explanation struct {
	Hook  *Hook
	Order int    // from 1 among those that would fire; 0: it would not
	Why   string // it would not fire; empty when it would
	Hears bool   // the event, so that only conditions and other hooks are in its way
	Unmet bool   // its condition, with these data, is what keeps it from firing
	By    *Hook  // it is not asked because this one comes first and decides
}

// Explain says of every hook, in the order they run, whether an event with these
// data would fire it, and if not why. Nothing is run: a hook is taken to succeed,
// and to decide when one of its actions does.
func (s Set) Explain(event Event, data map[string]any, firing ...string) []Explanation {
	data = withEvent(event, data)
	all := make([]Explanation, len(s.hooks))
	order := 0
	var winner *Hook // the first that decides, or names what is extended
	for i, h := range s.hooks {
		all[i] = Explanation{Hook: h, Hears: h.hears(event), Why: s.barred(h, event, data, firing)}
		if all[i].Why == "" && !h.Condition.Eval(data) {
			all[i].Why, all[i].Unmet = "condition: "+h.Condition.Why(data), true
		}
		if all[i].Why == "" && winner != nil && (event.Kind() == KindExtends || h.Layer != LayerInfra) {
			all[i].Why, all[i].By = fmt.Sprintf("hook %q (%s) comes first and decides", item.Shown(winner.ID), winner.Source()), winner
		}
		if all[i].Why != "" {
			continue
		}
		order++
		all[i].Order = order
		if winner == nil && wouldDecide(h, event, data) {
			winner = h
		}
	}
	return all
}

// wouldDecide reports whether no hook behind h is asked.
func wouldDecide(h *Hook, event Event, data map[string]any) bool {
	return slices.ContainsFunc(h.Actions, func(a item.Action) bool {
		if event.Kind() == KindExtends {
			id, _ := expr.ExpandText(a.SetExtends, data)
			return item.CheckID(id) == nil
		}
		if a.ItemID != ControlID {
			return false
		}
		params, _ := expr.ExpandAll(a.Params, data)
		values, _ := params.(map[string]any)
		_, err := decide(event, values)
		return err == nil
	})
}
