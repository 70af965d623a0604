package opening

import (
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Prompts are what the system prompt and the first message of a thread are made of;
// hooks may add to them.
type Prompts struct {
	prompt.Input
	Data     map[string]any // the facts, as context and hooks know them
	Injected []prompt.Injected
	Warnings []string // about templates that there is nothing for
}

// Prepare fills in the inputs of a directive, and puts the context that it is composed
// with around it. The facts need no body.
func Prepare(
	composed *prompt.Composition, doc *item.DirectiveDoc, values map[string]any, env map[string]string, facts prompt.Facts,
) (Prompts, error) {
	filled := prompt.Task(doc, values, env)
	facts.Body, facts.Text = filled.Body, prompt.Clean(prompt.Fill(doc, values, env))
	data, err := facts.Data()
	if err != nil {
		return Prompts{}, err
	}
	p := Prompts{Data: data}
	p.Input = prompt.Input{Directive: filled, Capabilities: facts.Capabilities, Secrets: inputs.Secrets(doc, values)}
	p.Context, p.Injected, p.Warnings = composed.Inject(data)
	return p, nil
}
