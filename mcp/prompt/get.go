package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxArguments is how many bytes the arguments of one prompt may have. A longer text
// belongs into a file: the text of a prompt stays in the context of a model.
const maxArguments = 64 << 10

// maxMessage bounds the words about a bad request, in bytes.
const maxMessage = 1000

// Text is a directive for the client's own model.
type Text struct {
	Description string
	Text        string
	Warnings    []string // for logs
}

// Get is the text of the directive that a name or an id means: composed as an inline
// call composes it, with the arguments put in. An argument that is empty is not given.
// A mistake that a person can put right is an [*Error].
func (l *Library) Get(ctx context.Context, c action.Caller, name string, args map[string]string) (*Text, error) {
	size := 0
	for key, value := range args {
		size += len(key) + len(value)
	}
	if size > maxArguments {
		return nil, errorf("the arguments have %d bytes, and a prompt takes %d at most", size, maxArguments).
			try("a file with the text, and its path as the argument")
	}
	s, err := l.look()
	if err != nil {
		return nil, err
	}
	e, err := s.find(name)
	if err != nil {
		return nil, err
	}
	var doc *item.DirectiveDoc // known when the directive may be used
	var refused error
	inline, err := l.Actions.Inline(ctx, c, e.ID, func(d *item.DirectiveDoc) (given map[string]any, _ error) {
		doc = d
		given, refused = values(e.ID, d, args)
		return given, refused
	})
	if refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, explain(e.ID, doc, err)
	}
	return &Text{Description: clip(inline.Doc.Description, maxDescription), Text: text(inline), Warnings: inline.Warnings}, nil
}

// text is the body, and after it what a thread would have tools for: the client's
// model has others, and none that returns outputs.
func text(inline *action.Inline) string {
	parts := []string{strings.TrimRight(inline.Body, "\n")}
	if slices.ContainsFunc(inline.Capabilities, func(c string) bool { return strings.HasPrefix(c, toolCapability) }) {
		parts = append(parts, "Where this names a tool that you do not have, use one of yours that does the same, or rye_execute with its id.")
	}
	if len(inline.Doc.Outputs) > 0 {
		parts = append(parts, "When you are done, report in your answer: "+action.OutputList(inline.Doc.Outputs)+".")
	}
	return strings.Join(parts, "\n\n")
}

// toolCapability is how capabilities begin that are for tools.
const toolCapability = "rye.execute.tool."

// values reads arguments as a directive declares them.
func values(id string, doc *item.DirectiveDoc, args map[string]string) (map[string]any, error) {
	if name := neededSecret(doc); name != "" {
		return nil, errorf("%s needs the secret %s, which no model is shown: only the tools of a thread get it", id, name).
			try("rye-mcp run %s --input-env %s=VARIABLE", id, name)
	}
	given := make(map[string]any, len(args))
	var wrong []string
	for name, text := range args {
		in, declared := input(doc, name)
		switch {
		case text == "": // menus send what was left empty
		case !declared:
			given[name] = text // for the call to refuse
		case in.Secret:
			wrong = append(wrong, name+" is secret and has no use here: only the tools of a thread get it")
		default:
			value, err := read(in, text)
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: %v", name, err))
			}
			given[name] = value
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return nil, errorf("%s: %s", id, strings.Join(wrong, "; ")).try("%s", usage(doc))
	}
	return given, nil
}

func input(doc *item.DirectiveDoc, name string) (in item.Input, declared bool) {
	i := slices.IndexFunc(doc.Inputs, func(in item.Input) bool { return in.Name == name })
	if i < 0 {
		return item.Input{}, false
	}
	return doc.Inputs[i], true
}

// read is the value of an argument. One text stands for a list of it: menus have a
// line for each argument.
func read(in item.Input, text string) (any, error) {
	if in.Type == item.TypeArray && !json.Valid([]byte(text)) {
		return []any{text}, nil
	}
	return item.ParseValue(in.Type, text)
}

// explain tells a person why a directive gives no text. The document is nil where it
// may not be used: nothing of it is repeated then.
func explain(id string, doc *item.DirectiveDoc, err error) error {
	f, ok := errors.AsType[*tool.Fault](err)
	if !ok || f.Code == tool.CodeInternal {
		return err
	}
	e := &Error{Message: clip(f.Message, maxMessage), Try: f.Try, Err: err}
	switch {
	case f.Code == tool.CodeInvalidInputs && doc != nil:
		e.Message, e.Try = id+": "+strings.TrimPrefix(e.Message, "invalid inputs: "), usage(doc)
	case f.Code == tool.CodeUnsupported:
		e.Try = "rye-mcp run " + id
	}
	return e
}

// usage tells which arguments a directive takes.
func usage(doc *item.DirectiveDoc) string {
	list := arguments(doc)
	if len(list) == 0 {
		return "no arguments"
	}
	for i, a := range list {
		if a.Required {
			list[i].Name += " (required)"
		}
		if a.Description != "" {
			list[i].Name += ": " + strings.TrimRight(clip(a.Description, 100), ".")
		}
	}
	var b strings.Builder
	b.WriteString("the arguments ")
	for i, a := range list {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(a.Name)
	}
	return b.String()
}
