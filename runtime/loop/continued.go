package loop

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// continuationID is the directive that tells the successor of a handoff how to go
// on, where the directive of the thread names none.
const continuationID = "rye/agent/continuation"

// The inputs of a continuation directive beside those of the thread.
const (
	originalDirective   = "original_directive"
	originalBody        = "original_directive_body"
	continuationMessage = "continuation_message"
)

const pickUp = "Pick up where the previous thread left off."

// takeOver makes the conversation that this thread was given to continue its own.
// Nobody but who made the thread has written it.
func (r *run) takeOver() error {
	given := r.meta.Continuation
	if given == nil {
		return nil
	}
	if err := r.Finisher.VouchedFor(r.ID, 0); err != nil {
		return fmt.Errorf("the conversation that thread %s continues: %w", r.ID, err)
	}
	own := r.records()
	messages, counted, err := transcript.Rebuild(own.Transcript(), own.Artifacts(), transcript.Until{})
	if err != nil {
		return err
	}
	if len(messages) != given.Messages {
		return fmt.Errorf("thread %s was given %d messages to continue, and its transcript has %d", r.ID, given.Messages, len(messages))
	}
	for _, m := range messages {
		r.conversation.add(m)
		for _, b := range m.Blocks {
			for _, image := range b.Images {
				r.gallery.admit(len(image.Data))
			}
		}
	}
	if counted.Model == r.meta.Model { // others have other tokens
		r.conversation.carry(counted)
	}
	r.acted = r.conversation.acted()
	r.children.ids = given.Children
	return nil
}

// composed is what goes into the thread's first prompts. The text around the
// directive in a first message does not come again in that of a successor.
func (r *run) composed() *prompt.Composition {
	if r.meta.Continuation == nil {
		return r.task.composed
	}
	system := *r.task.composed
	system.Context = slices.DeleteFunc(slices.Clone(system.Context), func(ref prompt.KnowledgeRef) bool {
		return ref.Position != prompt.System
	})
	return &system
}

// continuedMessage is the first message of a thread that continues another: what
// the person said who had it resumed, else the continuation directive, with what
// hooks put around it.
func (r *run) continuedMessage(hooks prompt.Blocks, body string) (string, error) {
	text := r.meta.Continuation.Message
	if text == "" {
		doc, err := r.continuationDirective()
		if err != nil {
			return "", err
		}
		text = prompt.Fill(doc, r.continuationInputs(doc, body), r.Env).Body
	}
	return prompt.Around(hooks, text), nil
}

// continuationDirective is the one that tells a successor how to go on.
func (r *run) continuationDirective() (*item.DirectiveDoc, error) {
	id := cmp.Or(r.task.doc.ContinuationDirective, continuationID)
	found, err := r.Resolver.Find(item.Directive, id)
	if err != nil {
		return nil, err
	}
	decision, err := r.Trust.Check(trust.SubjectOf(found))
	if err != nil {
		return nil, mendable(err)
	}
	if decision.Warning != "" {
		r.warn(decision.Warning)
	}
	return found.Directive()
}

// continuationInputs are the values for its placeholders. Body is the directive's
// own text.
func (r *run) continuationInputs(doc *item.DirectiveDoc, body string) map[string]any {
	values := map[string]any{}
	for _, in := range doc.Inputs {
		if in.Default != nil {
			values[in.Name] = in.Default
		}
	}
	maps.Copy(values, r.meta.Inputs)
	maps.Copy(values, map[string]any{
		originalDirective: r.meta.Directive, originalBody: body, handoff.InputPreviousThread: string(r.meta.ContinuationOf),
		continuationMessage: pickUp,
	})
	return values
}
