package scripted

import (
	"errors"
	"fmt"
	"strings"
	"text/template/parse"

	"gopkg.in/yaml.v3"
)

// text is a string that is rendered for each request: its pieces one after
// another.
type text struct{ pieces []piece }

// piece writes a part of a template; dot is what "." stands for.
type piece func(out *strings.Builder, r *request, dot any) error

// value is an expression in a template.
type value func(r *request, dot any) (any, error)

// UnmarshalYAML compiles the template.
func (t *text) UnmarshalYAML(n *yaml.Node) error {
	var src string
	if err := n.Decode(&src); err != nil {
		return err
	}
	compiled, err := compile(src)
	*t = compiled
	return at(n, err)
}

func (t text) set() bool { return t.pieces != nil }

// compile reads a template with the parser of text/template. It is evaluated
// here: the package's own evaluation finds methods by name, for which the linker
// keeps every method of the program, and the binary is a fifth larger.
func compile(src string) (text, error) {
	known := make(map[string]any, len(functions))
	for name := range functions {
		known[name] = name
	}
	trees, err := parse.Parse("script", src, "", "", known)
	if err != nil {
		return text{}, err
	}
	if len(trees) > 1 {
		return text{}, errors.New("template: script: a script defines no templates")
	}
	pieces, err := compileList(trees["script"].Root)
	return text{pieces}, err
}

func compileList(list *parse.ListNode) ([]piece, error) {
	pieces := []piece{}
	if list == nil {
		return pieces, nil
	}
	for _, node := range list.Nodes {
		p, err := compileNode(node)
		if err != nil {
			return nil, fmt.Errorf("template: script: %s: %w", node, err)
		}
		pieces = append(pieces, p)
	}
	return pieces, nil
}

func compileNode(node parse.Node) (piece, error) {
	switch node := node.(type) {
	case *parse.TextNode:
		return func(out *strings.Builder, _ *request, _ any) error {
			_, err := out.Write(node.Text)
			return err
		}, nil
	case *parse.ActionNode:
		v, err := compilePipe(node.Pipe)
		return show(v), err
	case *parse.IfNode:
		return compileBranch(&node.BranchNode, func(v, dot any) []any { return when(holds(v), dot) })
	case *parse.WithNode:
		return compileBranch(&node.BranchNode, func(v, _ any) []any { return when(holds(v), v) })
	case *parse.RangeNode:
		return compileBranch(&node.BranchNode, func(v, _ any) []any { return elements(v) })
	}
	return nil, errors.New("a script knows expressions, if, with and range")
}

// compileBranch compiles what is done once for each dot that dots makes of the
// value, and else when it makes none.
func compileBranch(node *parse.BranchNode, dots func(v, dot any) []any) (piece, error) {
	v, err := compilePipe(node.Pipe)
	if err != nil {
		return nil, err
	}
	then, err := compileList(node.List)
	if err != nil {
		return nil, err
	}
	otherwise, err := compileList(node.ElseList)
	return func(out *strings.Builder, r *request, dot any) error {
		about, err := v(r, dot)
		if err != nil {
			return err
		}
		all := dots(about, dot)
		if len(all) == 0 {
			return write(out, otherwise, r, dot)
		}
		for _, one := range all {
			if err := write(out, then, r, one); err != nil {
				return err
			}
		}
		return nil
	}, err
}

func when(holds bool, dot any) []any {
	if !holds {
		return nil
	}
	return []any{dot}
}

func write(out *strings.Builder, pieces []piece, r *request, dot any) error {
	for _, p := range pieces {
		if err := p(out, r, dot); err != nil {
			return err
		}
	}
	return nil
}

// show writes a value; one that is no text appears as JSON.
func show(v value) piece {
	return func(out *strings.Builder, r *request, dot any) error {
		shown, err := v(r, dot)
		if err != nil {
			return err
		}
		said, ok := shown.(string)
		if !ok {
			if said, err = toJSON(shown); err != nil {
				return err
			}
		}
		_, err = out.WriteString(said)
		return err
	}
}

// compilePipe makes each command's value the last argument of the next.
func compilePipe(pipe *parse.PipeNode) (v value, err error) {
	if len(pipe.Decl) > 0 {
		return nil, errors.New("a script has no variables")
	}
	for _, command := range pipe.Cmds {
		if v, err = compileCommand(command.Args, v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// compileCommand compiles a function with its arguments, or one value. last is
// what was piped into it, or nil.
func compileCommand(words []parse.Node, last value) (value, error) {
	name, called := words[0].(*parse.IdentifierNode)
	if !called {
		if len(words) > 1 || last != nil {
			return nil, fmt.Errorf("%s takes no arguments", words[0])
		}
		return compileOperand(words[0])
	}
	args := make([]value, 0, len(words))
	for _, word := range words[1:] {
		arg, err := compileOperand(word)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	if last != nil {
		args = append(args, last)
	}
	return call(functions[name.Ident], args), nil
}

func compileOperand(node parse.Node) (value, error) {
	switch node := node.(type) {
	case *parse.StringNode:
		return constant(node.Text), nil
	case *parse.BoolNode:
		return constant(node.True), nil
	case *parse.NumberNode:
		if !node.IsInt {
			return constant(node.Float64), nil
		}
		return constant(int(node.Int64)), nil
	case *parse.IdentifierNode:
		return compileCommand([]parse.Node{node}, nil)
	case *parse.PipeNode:
		return compilePipe(node)
	case *parse.DotNode:
		return func(_ *request, dot any) (any, error) { return dot, nil }, nil
	case *parse.FieldNode:
		return members(func(_ *request, dot any) (any, error) { return dot, nil }, node.Ident), nil
	case *parse.ChainNode:
		from, err := compileOperand(node.Node)
		return members(from, node.Field), err
	}
	return nil, fmt.Errorf("%s is no value", node)
}

func constant(v any) value { return func(*request, any) (any, error) { return v, nil } }

// members is a value within a value, by the names of keys.
func members(from value, names []string) value {
	return func(r *request, dot any) (any, error) {
		v, err := from(r, dot)
		for _, name := range names {
			if err == nil {
				v, err = index(v, name)
			}
		}
		return v, err
	}
}

func call(f function, args []value) value {
	return func(r *request, dot any) (any, error) {
		values := make([]any, len(args))
		for i, arg := range args {
			v, err := arg(r, dot)
			if err != nil {
				return nil, err
			}
			values[i] = v
		}
		return f(r, values)
	}
}

// render fills the template in for a request; without one it is empty.
func (t text) render(r *request) (string, error) {
	var out strings.Builder
	err := write(&out, t.pieces, r, map[string]any{"Turn": r.turn(), "Model": r.Model})
	return out.String(), err
}
