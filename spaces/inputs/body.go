package inputs

import (
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/foreign/claude"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Body is the body of a directive with its inputs and environment values filled in, in
// the syntax that it is written in. Commands and files that it names stay as they are
// written.
func Body(doc *item.DirectiveDoc, values map[string]any, env map[string]string) string {
	body := doc.Body
	switch doc.Syntax {
	case item.SyntaxNone: // of an agent, whose task stands below its own text
		if task := Task(doc, values); task != "" {
			body += "\n\nYour task:\n" + task
		}
	case item.SyntaxDollar:
		body = DollarValues(doc, values).Fill(claude.Parse(body))
	default:
		body = Interpolate(body, values, env)
	}
	return Below(body, doc.After)
}

// Task is what an agent is to do, which stands below its own text; empty for all other
// directives.
func Task(doc *item.DirectiveDoc, values map[string]any) string {
	if doc.Syntax != item.SyntaxNone {
		return ""
	}
	return text(values, claude.InputPrompt)
}

// DollarValues are the values of a directive whose syntax is [item.SyntaxDollar].
func DollarValues(doc *item.DirectiveDoc, values map[string]any) claude.Values {
	return claude.Values{Arguments: text(values, claude.InputArguments), Folder: doc.Folder}
}

func text(values map[string]any, name string) string {
	if value := values[name]; value != nil {
		return item.Text(value)
	}
	return ""
}

// Below is a body with what stands below it.
func Below(body, more string) string {
	if more == "" {
		return body
	}
	return strings.TrimSpace(body + "\n\n" + more)
}

// Placed reports whether the body of a directive has a place for an input.
func Placed(doc *item.DirectiveDoc) func(input string) bool {
	switch doc.Syntax {
	case item.SyntaxNone:
		return func(input string) bool { return input == claude.InputPrompt }
	case item.SyntaxDollar:
		placed := claude.Placed(claude.Parse(doc.Body))
		return func(input string) bool { return placed && input == claude.InputArguments }
	default:
		named := map[string]bool{}
		for _, use := range Uses(doc.Body) {
			named[use.Input] = true
		}
		return func(input string) bool { return named[input] }
	}
}
