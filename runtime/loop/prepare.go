package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// task is what the thread was started to do.
type task struct {
	doc   *item.DirectiveDoc
	grant permission.Grant
}

// offer is what the model is offered to act with.
type offer struct {
	palette palette.Palette
	tools   []llm.Tool
}

// prepare does the thread's own half of its start: the directive again, as the
// spawner saw it, the palette, the first message, the model's client.
func (r *run) prepare(ctx context.Context) error {
	if err := r.loadTask(); err != nil {
		return err
	}
	if err := r.buildOffer(); err != nil {
		return err
	}
	// This waits for the disk, what comes next for the processor.
	text, saved := r.capabilitiesText(), make(chan error, 1)
	go func() { saved <- r.saveOffer(text) }()
	err := r.beginWithModel(ctx)
	if err := errors.Join(err, <-saved); err != nil {
		return err
	}
	r.Reached.At(StepPrepared)
	return nil
}

func (r *run) beginWithModel(ctx context.Context) error {
	if err := r.begin(); err != nil {
		return err
	}
	choice, err := r.Providers.Choose(ctx, provider.Want{Override: r.meta.Model})
	if err != nil {
		return err
	}
	return r.openModel(ctx, choice)
}

// loadTask reads the directive and refuses one that is not what the spawner
// checked and its caller agreed to.
func (r *run) loadTask() error {
	found, err := r.Resolver.Find(item.Directive, r.meta.Directive)
	if err != nil {
		return err
	}
	if found.Hash != r.meta.DirectiveHash {
		return tool.Faultf(tool.CodeInvalidItem, "directive %s (%s) was changed after the thread was started",
			r.meta.Directive, found.Path).WithHint("start it again")
	}
	// What there is to warn of, the spawner has told.
	if _, err := r.Trust.Check(trust.SubjectOf(found)); err != nil {
		return err
	}
	doc, err := found.Directive()
	if err != nil {
		return err
	}
	r.task = task{doc: doc, grant: permission.Grant{Own: r.meta.Capabilities, Ceiling: r.meta.Ceiling}}
	return nil
}

// buildOffer decides which tools the model sees.
func (r *run) buildOffer() error {
	threads, err := action.ThreadItems()
	if err != nil {
		return err
	}
	// directive_return is offered by the palette itself, with the outputs of this
	// directive.
	threads = slices.DeleteFunc(threads, func(d tool.Definition) bool { return d.ID == action.DirectiveReturnID })
	r.offer.palette = palette.Build(palette.Input{
		Primaries: definitions(r.Actions.Tools(action.Caller{})), Tools: append(threads, definitions(r.Tools.All())...),
		Capabilities: r.task.grant.Own,
		Allow:        r.task.grant.Allows, Outputs: r.task.doc.Outputs, MaxTokens: r.Settings.PaletteTokens,
	})
	for _, e := range r.offer.palette.Entries {
		r.offer.tools = append(r.offer.tools, llm.Tool{
			Name: e.Name, Description: e.Definition.Description, Schema: e.Definition.Schema,
		})
	}
	return nil
}

// saveOffer leaves a record of what the thread may do and its model is offered.
func (r *run) saveOffer(text []byte) error {
	if err := r.folder().WriteCapabilities(text); err != nil {
		return err
	}
	r.Reached.At(StepOffer)
	return nil
}

func definitions(tools []tool.Tool) []tool.Definition {
	list := make([]tool.Definition, len(tools))
	for i, t := range tools {
		list[i] = t.Definition()
	}
	return list
}

// capabilitiesText is capabilities.md: what the thread may do and what its
// model is offered, signed when there is a key.
func (r *run) capabilitiesText() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Capabilities of %s\n\n", r.ID)
	b.WriteString(palette.CapabilityTree(r.task.grant.Own))
	for i, above := range r.task.grant.Ceiling {
		fmt.Fprintf(&b, "\nBounded by ancestor %d:\n\n%s", i+1, palette.CapabilityTree(above))
	}
	b.WriteString("\n## Tools\n\n")
	for _, e := range r.offer.palette.Entries {
		fmt.Fprintf(&b, "- `%s` (%s)\n", e.Name, e.ID)
	}
	for _, id := range r.offer.palette.Omitted {
		fmt.Fprintf(&b, "- not offered for lack of room, reachable through rye_execute: `%s`\n", id)
	}
	if key := r.Finisher.Key; key != nil {
		return sign.Attach([]byte(b.String()), ".md", key, r.Now())
	}
	return []byte(b.String())
}

// begin writes the first message and puts what happens on record.
func (r *run) begin() error {
	doc := *r.task.doc
	doc.Success = inputs.Interpolate(doc.Success, r.meta.Inputs, r.Env)
	doc.Failure = inputs.Interpolate(doc.Failure, r.meta.Inputs, r.Env)
	system, user := prompt.Build(prompt.Input{
		Directive: &doc, Capabilities: r.task.grant.Own, Body: inputs.Interpolate(doc.Body, r.meta.Inputs, r.Env),
	})
	err := r.Transcript.Append(thread.EventThreadStarted, transcript.ThreadStarted{
		Directive: r.meta.Directive, Model: r.meta.Model, ParentID: r.meta.ParentID,
		Limits: r.meta.Limits, Capabilities: r.meta.Capabilities, Warnings: r.meta.Warnings,
	})
	if err != nil {
		return err
	}
	r.system = system
	if system != "" {
		if err := r.Transcript.Append(thread.EventSystemPrompt, transcript.SystemPrompt{Text: system}); err != nil {
			return err
		}
	}
	return r.say(user)
}

// say adds a user message to the conversation.
func (r *run) say(text string) error {
	m := llm.Text(llm.User, text)
	r.talk.add(m)
	return r.Transcript.Append(thread.EventCognitionIn, transcript.CognitionIn{Role: m.Role, Blocks: m.Blocks})
}
