package parse

import (
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// readInputs reads <inputs>. Every child must be an <input>, since one that was
// passed over would be refused later as undeclared.
func readInputs(doc *item.DirectiveDoc, e *element) error {
	lines := make(map[string]int)
	for _, c := range e.children {
		if c.name != "input" {
			return c.errorf("<%s> cannot stand in <inputs>; it holds <input name=\"…\"> elements", c.name)
		}
		in, err := readInput(c)
		if err != nil {
			return err
		}
		if line, twice := lines[in.Name]; twice {
			return c.errorf("input %q is already declared on line %d", in.Name, line)
		}
		lines[in.Name] = c.line
		doc.Inputs = append(doc.Inputs, in)
	}
	return nil
}

func readInput(e *element) (item.Input, error) {
	in := item.Input{Type: item.TypeString, Description: e.prose()}
	in.Name, _ = e.attr("name")
	if err := checkName(e, in.Name); err != nil {
		return in, err
	}
	var err error
	if in.File, err = readType(e, &in); err != nil {
		return in, err
	}
	if in.Required, err = e.boolAttr("required"); err != nil {
		return in, err
	}
	_, says := e.attr("required")
	in.Optional = says && !in.Required
	if list, ok := e.attr("enum"); ok {
		for value := range strings.SplitSeq(list, ",") {
			in.Enum = append(in.Enum, strings.TrimSpace(value))
		}
	}
	for _, value := range in.Enum {
		if _, err := item.ParseValue(in.Type, value); err != nil {
			return in, e.errorf("enum of %s: %v", e.label(), err)
		}
	}
	if in.Default, err = readDefault(e, in); err != nil {
		return in, err
	}
	if in.Secret, err = e.boolAttr("secret"); err != nil {
		return in, err
	}
	return in, checkSecret(e, in)
}

// readType reads the type of an input. That of a file is a string for everything but
// the results that depend on the file.
func readType(e *element, in *item.Input) (file bool, err error) {
	if written, _ := e.attr("type"); strings.EqualFold(strings.TrimSpace(written), item.TypeFile) {
		return true, nil
	}
	typ, err := typeAttr(e)
	if typ != "" {
		in.Type = typ
	}
	return false, err
}

// checkSecret refuses a secret whose value would stand in the directive, or that
// cannot be found in the texts it must be kept out of.
func checkSecret(e *element, in item.Input) error {
	switch {
	case !in.Secret:
		return nil
	case in.Type != item.TypeString:
		return e.errorf("%s is secret, so its type must be string", e.label())
	case in.Default != nil:
		return e.errorf("%s is secret, so it cannot have a default: the file would hold its value", e.label())
	case in.Enum != nil:
		return e.errorf("%s is secret, so it cannot have an enum: the file would hold its value", e.label())
	}
	return nil
}

// readDefault reads the attribute default, which stands untrimmed: space may be
// what a default is about.
func readDefault(e *element, in item.Input) (any, error) {
	for _, a := range e.attrs {
		if a.Name.Local != "default" {
			continue
		}
		value, err := item.ParseValue(in.Type, a.Value)
		if err != nil {
			return nil, e.errorf("default of %s: %v", e.label(), err)
		}
		if !allowed(in, value) {
			return nil, e.errorf("default of %s is not one of its enum: %s", e.label(), said(strings.Join(item.ShownAll(in.Enum), ", ")))
		}
		return value, nil
	}
	return nil, nil
}

// allowed reports whether the enum of an input, if it has one, holds value.
func allowed(in item.Input, value any) bool {
	if in.Enum == nil || in.Type == item.TypeArray || in.Type == item.TypeObject {
		return true
	}
	for _, text := range in.Enum {
		if v, err := item.ParseValue(in.Type, text); err == nil && v == value {
			return true
		}
	}
	return false
}

// readOutputs reads <outputs>: <output name="…"> elements, elements named after
// the output, and the prose of <success> and <failure>.
func readOutputs(doc *item.DirectiveDoc, e *element) error {
	lines := make(map[string]int)
	for _, c := range e.children {
		switch c.name {
		case "success":
			doc.Success = join(doc.Success, c.spokenProse())
			continue
		case "failure":
			doc.Failure = join(doc.Failure, c.spokenProse())
			continue
		}
		out, err := readOutput(c)
		if err != nil {
			return err
		}
		if line, twice := lines[out.Name]; twice {
			return c.errorf("output %q is already declared on line %d", out.Name, line)
		}
		lines[out.Name] = c.line
		doc.Outputs = append(doc.Outputs, out)
	}
	return nil
}

func readOutput(e *element) (item.Output, error) {
	out := item.Output{Name: e.name, Description: e.prose()}
	if e.name == "output" {
		out.Name, _ = e.attr("name")
	}
	err := checkName(e, out.Name)
	if err != nil {
		return out, err
	}
	if out.Type, err = typeAttr(e); err != nil {
		return out, err
	}
	out.Required, err = e.boolAttr("required")
	return out, err
}

// typeAttr reads the attribute type; absent is "".
func typeAttr(e *element) (string, error) {
	s, ok := e.attr("type")
	if !ok {
		return "", nil
	}
	typ, err := item.ParseType(s)
	if err != nil {
		return "", e.errorf("%s: %v", e.label(), err)
	}
	return typ, nil
}

// checkName refuses names that a placeholder {input:name} could not hold.
func checkName(e *element, name string) error {
	if name == "" {
		return e.errorf("<%s> needs the attribute name", e.name)
	}
	for _, r := range name {
		if !isNameRune(r) {
			return e.errorf("the name %.80q has characters other than letters, digits, _, - and .", name)
		}
	}
	return nil
}

func isNameRune(r rune) bool {
	return r == '_' || r == '-' || r == '.' ||
		'0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// join puts two pieces of prose under each other.
func join(a, b string) string { return strings.TrimSpace(a + "\n" + b) }
