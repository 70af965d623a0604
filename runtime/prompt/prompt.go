package prompt

import (
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/palette"
)

// Input is what a first message is made from.
type Input struct {
	Directive    *item.DirectiveDoc
	Body         string   // the directive's body with its placeholders filled in
	Capabilities []string // what the thread may do, as patterns
	System       []string // context for the system prompt, in order
	Before       []string // context before the directive, in order
	After        []string // context after it, in order
}

// Build returns the system prompt, empty without system context, and the text
// of the one user message a thread starts with: the context before, the
// directive with description, permissions, body and returns section, and the
// context after. Text that goes into markup of its own is escaped; the body,
// the prose about outputs and all context stand as they were written.
func Build(in Input) (system, user string) {
	parts := make([]string, 0, len(in.Before)+1+len(in.After))
	parts = append(parts, in.Before...)
	parts = append(parts, directive(in))
	parts = append(parts, in.After...)
	return paragraphs(in.System), paragraphs(parts)
}

func directive(in Input) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<directive name=\"%s\">\n", attribute(in.Directive.Name))
	if in.Directive.Description != "" {
		fmt.Fprintf(&b, "<description>%s</description>\n", text(in.Directive.Description))
	}
	b.WriteString(permissions(in.Capabilities))
	fmt.Fprintf(&b, "\n%s\n\n", strings.Trim(in.Body, "\n"))
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
	if d.Success != "" {
		fmt.Fprintf(&b, "<success>%s</success>\n", d.Success)
	}
	if d.Failure != "" {
		fmt.Fprintf(&b, "<failure>%s</failure>\n", d.Failure)
	}
	b.WriteString("</returns>\n")
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
func paragraphs(parts []string) string {
	var full []string
	for _, p := range parts {
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
