package parse

import (
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// readHooks reads <hooks>. Events, operators and expressions are taken as
// written; package hook judges them. Elements it could not carry over are
// refused, for a hook without its condition would fire always.
func readHooks(doc *item.DirectiveDoc, e *element) error {
	for _, c := range e.children {
		if c.name != "hook" {
			return c.errorf("<%s> cannot stand in <hooks>; it holds <hook> elements", c.name)
		}
		hook, err := readHook(c)
		if err != nil {
			return err
		}
		doc.Hooks = append(doc.Hooks, hook)
	}
	return nil
}

func readHook(e *element) (item.Hook, error) {
	hook := item.Hook{Line: e.line}
	hook.ID, _ = e.attr("id")
	hook.Event, _ = e.attr("event")
	hook.Position, _ = e.attr("position")
	if _, ok := e.attr("wrap"); ok {
		wrap, err := e.boolAttr("wrap")
		if err != nil {
			return hook, err
		}
		hook.Wrap = &wrap
	}
	if _, ok := e.attr("required"); ok {
		required, err := e.boolAttr("required")
		if err != nil {
			return hook, err
		}
		hook.Required = required
	}
	if err := readTimeout(&hook, e); err != nil {
		return hook, err
	}
	var inputs *element
	for _, c := range e.children {
		if c.name == "inputs" && inputs == nil {
			inputs = c
			continue
		}
		if err := readHookChild(&hook, c); err != nil {
			return hook, err
		}
	}
	if hook.Event == "" && hook.When == "" {
		return hook, e.errorf("<hook> needs the attribute event, or a <when>")
	}
	if len(hook.Actions) == 0 {
		return hook, e.errorf("<hook> needs an <action> or an <execute>")
	}
	return hook, addInputs(&hook, inputs)
}

// readTimeout reads how long the hook may take, in seconds.
func readTimeout(hook *item.Hook, e *element) error {
	text, ok := e.attr("timeout")
	if !ok {
		return nil
	}
	value, err := item.ParseValue(item.TypeNumber, text)
	seconds, _ := value.(float64) // as it was asked for
	if err != nil || seconds <= 0 {
		return e.errorf("<hook timeout=%q> must be a number of seconds above 0", text)
	}
	hook.Timeout = seconds
	return nil
}

func readHookChild(hook *item.Hook, e *element) error {
	switch e.name {
	case "description":
		hook.Description = e.prose()
	case "inputs":
		return e.errorf("<hook> has <inputs> twice")
	case "when":
		if hook.When != "" {
			return e.errorf("<hook> has <when> twice; join the expressions in one")
		}
		hook.When = e.prose()
	case "condition":
		condition, err := readCondition(e)
		if err != nil {
			return err
		}
		hook.Conditions = append(hook.Conditions, condition)
	case "action":
		actions, err := readActions(e)
		if err != nil {
			return err
		}
		hook.Actions = append(hook.Actions, actions...)
	case "set_extends":
		hook.Actions = append(hook.Actions, item.Action{SetExtends: e.prose()})
	case "execute", "fetch", "search", "sign":
		action, err := readCall(e)
		if err != nil {
			return err
		}
		hook.Actions = append(hook.Actions, action)
	default:
		return e.errorf("<%s> cannot stand in <hook>; valid are <condition>, <action>, <when>, "+
			"<execute>, <fetch>, <search>, <sign>, <inputs>, <set_extends>, <description>", e.name)
	}
	return nil
}

// readCondition reads <condition path op value/>.
func readCondition(e *element) (item.Condition, error) {
	var c item.Condition
	c.Path, _ = e.attr("path")
	c.Op, _ = e.attr("op")
	if c.Path == "" || c.Op == "" || len(e.children) > 0 {
		return c, e.errorf("<condition> needs the attributes path and op, and holds no elements")
	}
	if value, ok := e.attr("value"); ok {
		c.Value = typed(value)
	}
	return c, nil
}

// readActions reads <action>: the call by its attributes, or the calls nested
// in it.
func readActions(e *element) ([]item.Action, error) {
	var calls []item.Action
	for _, c := range e.children {
		if c.name == "param" {
			continue
		}
		if c.name == "set_extends" {
			calls = append(calls, item.Action{SetExtends: c.prose()})
			continue
		}
		call, err := readCall(c)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	own, err := readAttrs(e)
	if err != nil {
		return nil, err
	}
	own.Primary, _ = e.attr("primary")
	own.SetExtends, _ = e.attr("set_extends")
	declares := own.Primary != "" || own.ItemID != "" || own.SetExtends != "" || own.Params != nil
	switch {
	case declares && len(calls) > 0:
		return nil, e.errorf("<action> says what it does by attributes and by elements; keep one")
	case len(calls) > 0:
		return calls, nil
	case own.Primary == "" && own.SetExtends == "":
		return nil, e.errorf("<action> needs the attributes primary, item_type and item_id, or set_extends")
	}
	return []item.Action{own}, nil
}

// readCall reads <execute item_type item_id> and its siblings. In the short
// form the item id is the text.
func readCall(e *element) (item.Action, error) {
	switch e.name {
	case "execute", "fetch", "search", "sign":
	default:
		return item.Action{}, e.errorf("<%s> is not an action; valid are <execute>, <fetch>, <search>, <sign>, <set_extends>", e.name)
	}
	action, err := readAttrs(e)
	action.Primary = e.name
	if action.ItemID == "" {
		action.ItemID = strings.TrimSpace(e.text)
	}
	return action, err
}

// readAttrs reads what <action> and <execute> have in common.
func readAttrs(e *element) (item.Action, error) {
	var a item.Action
	a.ItemType, _ = e.attr("item_type")
	a.ItemID, _ = e.attr("item_id")
	var err error
	a.Params, err = readParams(e)
	return a, err
}

// readParams reads the <param> children of e; nil when there are none. A param
// holds text, or the attribute value, or params of its own.
func readParams(e *element) (map[string]any, error) {
	var params map[string]any
	for _, c := range e.children {
		if c.name != "param" {
			continue
		}
		name, _ := c.attr("name")
		if name == "" {
			return nil, c.errorf("<param> needs the attribute name")
		}
		if _, twice := params[name]; twice {
			return nil, c.errorf("<param name=%q> is given twice", name)
		}
		value, err := paramValue(c)
		if err != nil {
			return nil, err
		}
		if params == nil {
			params = make(map[string]any)
		}
		params[name] = value
	}
	return params, nil
}

func paramValue(e *element) (any, error) {
	nested, err := readParams(e)
	if err != nil {
		return nil, err
	}
	if nested != nil {
		return nested, nil
	}
	if value, ok := e.attr("value"); ok {
		return typed(value), nil
	}
	return e.prose(), nil
}

// addInputs gives the <inputs> of the short form to the one action of the hook.
func addInputs(hook *item.Hook, inputs *element) error {
	if inputs == nil {
		return nil
	}
	if len(hook.Actions) != 1 {
		return inputs.errorf("<inputs> belongs to a hook with one action, not %d", len(hook.Actions))
	}
	params := hook.Actions[0].Params
	if params == nil {
		params = make(map[string]any, len(inputs.children))
	}
	for _, c := range inputs.children {
		name := c.name
		if attr, ok := c.attr("name"); ok {
			name = attr
		}
		if _, twice := params[name]; twice {
			return c.errorf("the input %q of the hook is given twice", name)
		}
		params[name] = c.prose()
	}
	hook.Actions[0].Params = params
	return nil
}

// typed gives an attribute value the type it is written in: bool, int64,
// float64 or string.
func typed(s string) any {
	switch strings.ToLower(s) {
	case "true":
		return true
	case "false":
		return false
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i
	}
	if f, err := item.ParseValue(item.TypeNumber, s); err == nil {
		return f
	}
	return s
}
