package prompt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/palette"
)

// Input is what a first message is made from.
type Input struct {
	Directive    *item.DirectiveDoc // with its placeholders filled in, see [Fill]
	Capabilities []string           // what the thread may do, as patterns
	Secrets      []string           // names of the secret inputs that have a value
	Context      Blocks             // of the directive and what it extends
	Hooks        Blocks             // what hooks collected
}

// Blocks are texts that stand around a directive, by position and in order.
type Blocks struct {
	System []string
	Before []string
	After  []string
}

// Add appends a text at a position.
func (b *Blocks) Add(position, text string) {
	switch position {
	case System:
		b.System = append(b.System, text)
	case Before:
		b.Before = append(b.Before, text)
	default:
		b.After = append(b.After, text)
	}
}

// Build returns the system prompt, empty without system context, and the text
// of the one user message a thread starts with: what hooks put before, the
// context before, the directive with description, permissions, body and returns
// section, the context after, and what hooks put after. Text that goes into
// markup of its own is escaped; the body, the prose about outputs and all context
// stand as they were written.
func Build(in Input) (system, user string) {
	return paragraphs(in.Context.System, in.Hooks.System),
		paragraphs(in.Hooks.Before, in.Context.Before, []string{directive(in)}, in.Context.After, in.Hooks.After)
}

// Inline is the same as one text for a model that has a system prompt of its own
// and no thread: the system context first, and of the directive the body and the
// prose about outputs.
func Inline(in Input) string {
	var own strings.Builder
	own.WriteString(strings.Trim(in.Directive.Body, "\n"))
	if p := prose(in.Directive); p != "" {
		own.WriteString("\n\n" + strings.TrimSuffix(p, "\n"))
	}
	return paragraphs(in.Context.System, in.Hooks.System, in.Hooks.Before, in.Context.Before, []string{own.String()},
		in.Context.After, in.Hooks.After)
}

// Around returns a text with what hooks put before and after it.
func Around(hooks Blocks, text string) string {
	return paragraphs(hooks.Before, []string{strings.Trim(text, "\n")}, hooks.After)
}

func directive(in Input) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<directive name=\"%s\">\n", attribute(in.Directive.Name))
	if in.Directive.Description != "" {
		fmt.Fprintf(&b, "<description>%s</description>\n", text(in.Directive.Description))
	}
	b.WriteString(permissions(in.Capabilities))
	b.WriteString(secrets(in.Secrets))
	fmt.Fprintf(&b, "\n%s\n\n", strings.Trim(in.Directive.Body, "\n"))
	b.WriteString(returns(in.Directive))
	b.WriteString("</directive>")
	return b.String()
}

func permissions(capabilities []string) string {
	if len(capabilities) == 0 {
		return "<permissions>none</permissions>\n"
	}
	return "<permissions>\n" + text(strings.Join(capabilities, "\n")) + "\n</permissions>\n"
}

// secrets is the section that says what the placeholders of secrets are for; empty
// when there are none.
func secrets(names []string) string {
	if len(names) == 0 {
		return ""
	}
	placeholders := make([]string, len(names))
	for i, name := range names {
		placeholders[i] = inputs.Placeholder(name)
	}
	return "<secrets>" + strings.Join(placeholders, ", ") + ": each stands for a value that nobody is shown. " +
		"Write it as it is in the arguments of a tool that needs the value (in a shell command it is quoted for its place), " +
		"or in an input that another directive declares secret. What comes back holds it again in place of the value.</secrets>\n"
}

// returns is the section that says how to hand over the result; empty when the
// directive says nothing about it.
func returns(d *item.DirectiveDoc) string {
	if len(d.Outputs) == 0 && d.Success == "" && d.Failure == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("<returns>\n")
	if len(d.Outputs) > 0 {
		fmt.Fprintf(&b, "When the task is done, call the tool `%s` with these fields:\n%s"+
			"When something keeps you from finishing, call it with `status` set to `error` and the reason in `error_detail`.\n",
			palette.ReturnName, text(fields(d.Outputs)))
	}
	b.WriteString(prose(d))
	b.WriteString("</returns>\n")
	return b.String()
}

// prose is what a directive says in words about success and failure.
func prose(d *item.DirectiveDoc) string {
	var b strings.Builder
	if d.Success != "" {
		fmt.Fprintf(&b, "<success>%s</success>\n", d.Success)
	}
	if d.Failure != "" {
		fmt.Fprintf(&b, "<failure>%s</failure>\n", d.Failure)
	}
	return b.String()
}

// fields lists outputs, one a line.
func fields(outputs []item.Output) string {
	var b strings.Builder
	for _, o := range outputs {
		typ, need := o.Type, "optional"
		if typ == "" {
			typ = "any type"
		}
		if o.Required {
			need = "required"
		}
		fmt.Fprintf(&b, "- `%s` (%s, %s)", o.Name, typ, need)
		if o.Description != "" {
			b.WriteString(": " + o.Description)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// MaxNudges is how often a model is reminded before its answer is taken as it is.
const MaxNudges = 2

// Nudge is the n-th reminder (from 1, at most [MaxNudges]) to a model that ended
// its turn with text alone: to return the outputs where the directive declares
// some, else to use its tools.
func Nudge(n int, outputs []item.Output) string {
	if len(outputs) == 0 {
		return "You answered without calling a tool. If the task needs one, call it now. " +
			"If your answer is complete, give it again in full; it will be taken as the result."
	}
	reminder := fmt.Sprintf("The outputs are still missing. Call the tool `%s` now with these fields:\n%s"+
		"When something keeps you from finishing, call it with `status` set to `error` and the reason in `error_detail`.",
		palette.ReturnName, fields(outputs))
	if n >= MaxNudges {
		reminder += "\nThis is the last reminder: after another answer without that call the thread ends without outputs."
	}
	return reminder
}

// paragraphs joins the parts that are not empty by blank lines.
func paragraphs(lists ...[]string) string {
	var full []string
	for _, p := range slices.Concat(lists...) {
		if p != "" {
			full = append(full, p)
		}
	}
	return strings.Join(full, "\n\n")
}

// text escapes s for the content of an element. The standard library's escaping
// would also replace line ends and quotes, which a model reads better as they
// are.
func text(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// attribute escapes s for a value in double quotes, on one line.
func attribute(s string) string {
	return strings.NewReplacer("\"", "&quot;", "\n", " ", "\r", " ").Replace(text(s))
}
