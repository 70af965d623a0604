package loop

import (
	"context"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// begin writes the first message of its own and puts what happens on record.
func (r *run) begin(ctx context.Context) error {
	if err := r.takeOver(); err != nil {
		return err
	}
	first, err := opening.Prepare(r.composed(), r.task.doc, r.meta.Inputs, r.Env, r.facts())
	if err != nil {
		return err
	}
	r.task.text = first.Data[directiveText]
	err = r.Transcript.Append(thread.EventThreadStarted, transcript.ThreadStarted{
		Directive: r.meta.Directive, Model: r.meta.Model, ParentID: r.meta.ParentID,
		Limits: r.meta.Limits, Capabilities: r.meta.Capabilities, Warnings: slices.Concat(r.meta.Warnings, first.Warnings),
		QueuedAt: r.queuedAt, AdmittedAt: r.admittedAt,
	})
	if err != nil {
		return err
	}
	if err := r.recordRoute(); err != nil {
		return err
	}
	if err := (&filler{run: r}).fill(ctx, &first); err != nil {
		return err
	}
	hooked, byHooks, err := r.startHooks(ctx, first.Data)
	if err != nil {
		return err
	}
	first.Hooks = hooked
	system, user := prompt.Build(first.Input)
	if r.meta.Continuation != nil {
		if user, err = r.continuedMessage(hooked, first.Directive.Body); err != nil {
			return err
		}
	} else if r.meta.BeginsWith != "" {
		user += "\n\n" + r.meta.BeginsWith
	}
	if err := r.recordPrompts(system, first.Injected, byHooks); err != nil {
		return err
	}
	return r.say(user)
}

// recordPrompts takes over the system prompt and puts on record what the first request
// is made from.
func (r *run) recordPrompts(system string, injected []prompt.Injected, byHooks []transcript.ContextInjected) error {
	r.system = system
	if err := r.Transcript.Append(thread.EventToolsOffered, transcript.ToolsOffered{Tools: r.toolset.tools}); err != nil {
		return err
	}
	if system != "" {
		if err := r.Transcript.Append(thread.EventSystemPrompt, transcript.SystemPrompt{Text: system}); err != nil {
			return err
		}
	}
	for _, i := range injected {
		context := transcript.ContextInjected{ItemID: i.ID, Position: i.Position, Directive: i.Directive, Hash: i.Hash, Bytes: i.Bytes}
		if item.NamesThread(i.ID) { // which is another text tomorrow
			context.Text = i.Doc.Body
		}
		if err := r.Transcript.Append(thread.EventContextInjected, context); err != nil {
			return err
		}
	}
	for _, i := range byHooks {
		if err := r.Transcript.Append(thread.EventContextInjected, i); err != nil {
			return err
		}
	}
	return nil
}

// recordRoute puts on record that a hook has chosen what the directive extends,
// which it did in the spawner.
func (r *run) recordRoute() error {
	by := r.meta.Route
	if by == nil {
		return nil
	}
	return r.Transcript.Append(thread.EventHookFired, transcript.HookFired{
		HookID: by.Hook, Event: string(hook.EventResolveExtends), Layer: by.Layer, Source: by.Source,
		Result: "extends " + r.meta.Extends(),
	})
}

// facts are what is known about this thread when it starts.
func (r *run) facts() prompt.Facts {
	return prompt.Facts{
		Directive: r.meta.Directive, ProjectPath: r.place.dir(r.Project), Inputs: r.meta.Inputs,
		Capabilities: r.task.grant.Own,
		Thread: &prompt.ThreadFacts{
			Model: r.meta.Model, ParentID: r.meta.ParentID, Depth: len(r.meta.Ceiling), Limits: r.meta.Limits,
		},
	}
}

// say adds a user message to the conversation.
func (r *run) say(text string) error {
	m := llm.Text(llm.User, text)
	r.conversation.add(m)
	return r.Transcript.Append(thread.EventCognitionIn, transcript.CognitionIn{Role: m.Role, Blocks: m.Blocks})
}
