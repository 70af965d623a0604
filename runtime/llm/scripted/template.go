package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template/parse"

	"gopkg.in/yaml.v3"
)

// text is a string that is rendered for each request: its pieces one after
// another.
type text struct{ pieces []value }

// value is a piece of a template, or an argument within one.
type value func(r *request) (any, error)

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
	out := text{pieces: []value{}}
	for _, node := range trees["script"].Root.Nodes {
		piece, err := compileNode(node)
		if err != nil {
			return text{}, fmt.Errorf("template: script:%s: %w", node, err)
		}
		out.pieces = append(out.pieces, piece)
	}
	return out, nil
}

func compileNode(node parse.Node) (value, error) {
	switch node := node.(type) {
	case *parse.TextNode:
		return constant(string(node.Text)), nil
	case *parse.ActionNode:
		return compilePipe(node.Pipe)
	}
	return nil, errors.New("a script knows text and {{ expressions }} only")
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
	case *parse.FieldNode:
		return compileField(node.Ident)
	case *parse.ChainNode:
		from, err := compileOperand(node.Node)
		return members(from, node.Field), err
	}
	return nil, fmt.Errorf("%s is no value", node)
}

// compileField is what a template knows of a request besides its functions.
func compileField(names []string) (value, error) {
	switch strings.Join(names, ".") {
	case "Turn":
		return func(r *request) (any, error) { return r.turn(), nil }, nil
	case "Model":
		return func(r *request) (any, error) { return r.Model, nil }, nil
	}
	return nil, fmt.Errorf("there is .Turn and .Model, not .%s", strings.Join(names, "."))
}

func constant(v any) value { return func(*request) (any, error) { return v, nil } }

// members is a value within a value, by the names of keys.
func members(from value, names []string) value {
	return func(r *request) (any, error) {
		v, err := from(r)
		for _, name := range names {
			if err == nil {
				v, err = index(v, name)
			}
		}
		return v, err
	}
}

func call(f function, args []value) value {
	return func(r *request) (any, error) {
		values := make([]any, len(args))
		for i, arg := range args {
			v, err := arg(r)
			if err != nil {
				return nil, err
			}
			values[i] = v
		}
		return f(r, values)
	}
}

// render fills the template in for a request; without one it is empty. Values
// that are not text appear as JSON.
func (t text) render(r *request) (string, error) {
	var out strings.Builder
	for _, piece := range t.pieces {
		v, err := piece(r)
		if err != nil {
			return out.String(), err
		}
		said, ok := v.(string)
		if !ok {
			data, err := json.Marshal(v)
			if err != nil {
				return out.String(), err
			}
			said = string(data)
		}
		out.WriteString(said)
	}
	return out.String(), nil
}
