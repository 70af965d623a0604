package parse

import (
	"cmp"
	"encoding/xml"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// shape says which names an element of a directive may hold.
type shape struct {
	part     item.Part
	attrs    []string
	children map[string]shape
	open     bool // it may hold any other element
}

// notes is the shape of an element that is prose, or the author's own.
func notes() shape { return shape{open: true} }

// directiveShape is the whole format. Elements that the readers refuse when they
// do not know them need no place here.
func directiveShape() shape {
	return shape{attrs: []string{"name", "version", "extends"}, children: map[string]shape{
		"metadata":         metadataShape(),
		"description":      notes(),
		"inputs":           {part: item.PartInputs, children: map[string]shape{"input": inputShape()}},
		"outputs":          outputsShape(),
		"process":          notes(),
		"success_criteria": notes(), // of the original format; the prompt has its own
		"cost":             notes(),
	}}
}

func metadataShape() shape {
	model := shape{part: item.PartModel, attrs: []string{"provider", "tier", "id", "fallback", "effort"}}
	return shape{children: map[string]shape{
		"description": notes(), "category": notes(), "author": notes(), "cost": notes(),
		"model": model, "model_class": model,
		"limits":                 {part: item.PartLimits, open: true, attrs: limitAttrs()},
		"permissions":            permissionsShape(),
		"hooks":                  {open: true, children: map[string]shape{"hook": hookShape()}},
		"context":                contextShape(),
		"continuation_directive": notes(),
		"workspace":              {part: item.PartWorkspace, attrs: []string{"type"}},
		"retry":                  {part: item.PartRetry, attrs: retryAttrs()},
	}}
}

func limitAttrs() []string {
	names := []string{onLimit}
	for _, name := range item.LimitNames() {
		names = append(names, name, "max_"+name)
	}
	return names
}

func inputShape() shape {
	return shape{part: item.PartInputs, open: true, attrs: []string{"name", "type", "required", "default", "enum", "secret"}}
}

// outputsShape leaves the names of the elements open: they may be those of outputs.
func outputsShape() shape {
	output := shape{part: item.PartOutputs, open: true, attrs: []string{"name", "type", "required"}}
	return shape{part: item.PartOutputs, open: true, children: map[string]shape{
		"output": output, "success": notes(), "failure": notes(), "": output,
	}}
}

func permissionsShape() shape {
	pattern := shape{part: item.PartPermissions, open: true}
	action := shape{part: item.PartPermissions, open: true, children: map[string]shape{}}
	for _, kind := range item.Kinds() {
		action.children[string(kind)] = pattern
	}
	all := shape{part: item.PartPermissions, open: true, children: map[string]shape{
		"acknowledge": {part: item.PartPermissions, open: true, attrs: []string{"risk"}},
	}}
	for _, name := range actions() {
		all.children[name] = action
	}
	return all
}

func hookShape() shape {
	call := shape{open: true, attrs: []string{"item_type", "item_id"}}
	hook := shape{open: true, attrs: []string{"id", "event", "position", "wrap", "required", "timeout"}, children: map[string]shape{
		"condition": {open: true, attrs: []string{"path", "op", "value"}},
		"action":    {open: true, attrs: []string{"primary", "item_type", "item_id", "set_extends"}, children: map[string]shape{}},
	}}
	for _, name := range actions() {
		hook.children[name] = call
		hook.children["action"].children[name] = call
	}
	return hook
}

// contextShape has the notes on other directives and files of the original format.
func contextShape() shape {
	return shape{children: map[string]shape{
		"system": {}, "before": {}, "after": {}, "suppress": {},
		"related_files": notes(), "requires": notes(), "depends_on": notes(), "suggests": notes(), "tech_stack": notes(),
	}}
}

// unknownNames lists the names in a directive that its format does not know, in
// the order of the file.
func unknownNames(root *element) []item.UnknownName {
	format := directiveShape()
	f := unknownFinder{homes: map[string]home{}}
	f.learn(format, "directive")
	f.look(root, format)
	slices.SortStableFunc(f.found, func(a, b item.UnknownName) int { return cmp.Compare(a.Line, b.Line) })
	return f.found
}

// home is where an element belongs.
type home struct {
	parent string
	part   item.Part
}

type unknownFinder struct {
	homes map[string]home // of the elements directly below <directive>, <metadata> and <outputs>
	found []item.UnknownName
}

func (f *unknownFinder) learn(s shape, name string) {
	for child, its := range s.children {
		if child == "description" || child == "cost" {
			continue // they may stand in both
		}
		f.homes[child] = home{parent: name, part: its.part}
		switch child {
		case "metadata":
			f.learn(its, child)
		case "outputs":
			f.homes["success"], f.homes["failure"] = home{parent: child}, home{parent: child}
		}
	}
}

func (f *unknownFinder) add(e *element, part item.Part, nearest, format string, args ...any) {
	f.found = append(f.found, item.UnknownName{Line: e.line, Text: sayf(format, args...), Nearest: nearest, Part: part})
}

// look compares an element with its shape.
func (f *unknownFinder) look(e *element, s shape) {
	for _, a := range e.attrs {
		f.attr(e, s, a)
	}
	f.text(e, s)
	if e.name == "outputs" {
		f.outputs(e)
	}
	for _, c := range e.children {
		its, known := s.children[c.name]
		if !known {
			its, known = s.children[""]
		}
		switch {
		case known:
			f.look(c, its)
		case !s.open:
			f.element(c, e, s)
		}
	}
}

func (f *unknownFinder) attr(e *element, s shape, a xml.Attr) {
	if a.Name.Space == "" && slices.Contains(s.attrs, a.Name.Local) {
		if a.Name.Local == "type" {
			f.typ(e, s, a.Value)
		}
		return
	}
	nearest, part := item.Nearest(strings.ToLower(a.Name.Local), s.attrs), s.part
	if e.name == "directive" && nearest == "extends" {
		part = item.PartExtends
	}
	name := a.Name.Local
	if a.Name.Space != "" {
		name = a.Name.Space + ":" + name
	}
	f.add(e, part, nearest, "%s has no attribute %q", e.label(), name)
}

// typ tells of a type that is written otherwise than the format has it.
func (f *unknownFinder) typ(e *element, s shape, written string) {
	typ, err := item.ParseType(written)
	if written = strings.TrimSpace(written); s.part != "" && err == nil && !strings.EqualFold(typ, written) {
		f.add(e, "", "", "%s: the type %q is not of the format; it is read as %s", e.label(), written, typ)
	}
}

// text tells of a text that says nothing where attributes count.
func (f *unknownFinder) text(e *element, s shape) {
	text := strings.TrimSpace(e.text)
	wordy := s.part == item.PartModel && (len(e.attrs) > 0 || strings.ContainsAny(text, " \n"))
	if text == "" || wordy || s.part != item.PartModel && s.part != item.PartLimits {
		return
	}
	f.add(e, s.part, "", "<%s> holds a text; what counts are its attributes %s", e.name, said(strings.Join(s.attrs, ", ")))
}

// outputs tells of elements that are read as outputs of their own name and look
// like something else.
func (f *unknownFinder) outputs(e *element) {
	for _, c := range e.children {
		if c.name == "output" || c.name == "success" || c.name == "failure" {
			continue
		}
		if _, named := c.attr("name"); named {
			f.add(c, item.PartOutputs, "<output>", "<%s> with a name is not known in <outputs>", c.name)
			continue
		}
		if near := item.Nearest(strings.ToLower(c.name), []string{"success", "failure"}); near != "" {
			f.add(c, "", "<"+near+">", "<%s> is read as an output of that name", c.name)
		}
	}
}

// element tells of an element that does not belong where it stands.
func (f *unknownFinder) element(c, parent *element, s shape) {
	if where, ok := f.homes[c.name]; ok {
		f.add(c, cmp.Or(where.part, s.part), "", "<%s> belongs in <%s>; in <%s> nobody reads it", c.name, where.parent, parent.name)
		return
	}
	if item.Nearest(strings.ToLower(c.name), []string{"extends"}) != "" {
		f.add(c, item.PartExtends, `<directive extends="…">`, "<%s> is not known in <%s>", c.name, parent.name)
		return
	}
	near := item.Nearest(strings.ToLower(c.name), slices.Sorted(maps.Keys(s.children)))
	near = cmp.Or(near, item.Nearest(strings.ToLower(c.name), slices.Sorted(maps.Keys(f.homes))))
	near = cmp.Or(near, otherWord(c.name))
	part := cmp.Or(s.part, s.children[near].part, f.homes[near].part)
	if inner := f.holds(c); part == "" && inner != nil {
		f.add(c, f.homes[inner.name].part, "", "<%s> is not known in <%s>, so that nobody reads the <%s> in it", c.name, parent.name, inner.name)
		return
	}
	if near != "" {
		near = "<" + near + ">"
	}
	f.add(c, part, near, "<%s> is not known in <%s>", c.name, parent.name)
}

// holds finds an element within an unknown one that says what a thread may do,
// spend or must be given.
func (f *unknownFinder) holds(e *element) *element {
	for _, c := range e.children {
		if f.homes[c.name].part != "" {
			return c
		}
		if inner := f.holds(c); inner != nil {
			return inner
		}
	}
	return nil
}

// otherWord is what the format calls something that others call by this name.
func otherWord(name string) string {
	switch strings.ToLower(name) {
	case "perms", "capabilities", "rights", "grants":
		return "permissions"
	case "budget", "limitations":
		return "limits"
	case "params", "parameters", "arguments", "args":
		return "inputs"
	case "returns":
		return "outputs"
	case "worktree", "isolation":
		return "workspace"
	case "llm", "model_id":
		return "model"
	}
	return ""
}
