package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/builtin/artifact"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// task is what the thread was started to do.
type task struct {
	doc      *item.DirectiveDoc
	composed *prompt.Composition
	grant    permission.Grant
	text     any // what [prompt.Clean] makes of doc; nil before the thread begins
}

// toolset is what the model is offered to act with.
type toolset struct {
	palette palette.Palette
	tools   []llm.Tool
	// artifacts is read_artifact, which is in no registry: it is no item.
	artifacts tool.Tool
}

// prepare does the thread's own half of its start: the directive again, as the
// spawner saw it, the palette, the first message, the model's client.
func (r *run) prepare(ctx context.Context) error {
	if err := r.loadTask(); err != nil {
		return err
	}
	if err := r.loadHooks(); err != nil {
		return err
	}
	if err := r.buildToolset(); err != nil {
		return err
	}
	// This waits for the disk, what comes next for the processor.
	text, err := r.capabilitiesText()
	if err != nil {
		return err
	}
	saved := make(chan error, 1)
	go func() { saved <- r.saveToolset(text) }()
	err = r.beginWithModel(ctx)
	if err := errors.Join(err, <-saved); err != nil {
		return err
	}
	r.Crashpoints.At(CrashPrepared)
	return nil
}

func (r *run) beginWithModel(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	choice, err := r.Providers.Choose(ctx, provider.Want{Override: r.meta.Model})
	if err != nil {
		return err
	}
	r.begins = choice.Model
	r.cacheKey = cacheKeyOf(r.meta)
	return r.openModel(ctx, choice)
}

// loadTask reads the directive and what it extends, and refuses what is not as
// the spawner checked it and its caller agreed to.
func (r *run) loadTask() error {
	found, err := r.Resolver.Find(item.Directive, r.meta.Directive)
	if err != nil {
		return err
	}
	if found.Hash != r.meta.DirectiveHash {
		return changed(r.meta.Directive, found.Path)
	}
	// The spawner has told the warnings.
	if _, err := r.Trust.Check(trust.SubjectOf(found)); err != nil {
		return err
	}
	composed, err := prompt.Composer{Resolver: r.Resolver, Trust: r.Trust}.Compose(found, r.meta.Extends())
	if err != nil {
		return prompt.Fault(err)
	}
	if err := sameChain(r.meta.Chain, composed.Chain[1:]); err != nil {
		return err
	}
	r.task = task{
		doc: composed.Chain[0].Doc, composed: composed,
		grant: permission.Grant{Own: r.meta.Own(), Ceiling: r.meta.Ceiling},
	}
	return r.haveSecrets()
}

// sameChain refuses a chain that is not the one on record. It cannot be shorter
// when nothing of it has changed.
func sameChain(recorded []thread.ChainLink, now []prompt.Link) error {
	for i, link := range now {
		if i >= len(recorded) || recorded[i] != (thread.ChainLink{Directive: link.ID, Hash: link.Hash}) {
			return changed(link.ID, link.Path)
		}
	}
	return nil
}

func changed(directive, where string) error {
	return tool.Faultf(tool.CodeInvalidItem, "directive %s (%s) was changed after the thread was started",
		directive, where).WithHint("start it again")
}

// buildToolset decides which tools the model sees.
func (r *run) buildToolset() error {
	box := opening.Toolbox{Resolver: r.Resolver, Actions: r.Actions, Executor: r.Executor}
	offered, err := box.Palette(opening.Wanted{
		Grant: r.task.grant, Outputs: r.task.doc.Outputs, Room: r.Settings.PaletteTokens, Tokens: r.meta.Limits.Tokens,
	})
	if err != nil {
		return err
	}
	r.toolset = toolset{palette: offered, tools: opening.Tools(offered), artifacts: artifact.New()}
	return nil
}

// saveToolset leaves a record of what the thread may do and its model is offered.
func (r *run) saveToolset(text []byte) error {
	if err := r.records().Capabilities().Write(text); err != nil {
		return err
	}
	r.Crashpoints.At(CrashToolset)
	return nil
}

// capabilitiesText is capabilities.md: what the thread may do and what its
// model is offered, signed.
func (r *run) capabilitiesText() ([]byte, error) {
	held := palette.Held{Own: r.task.grant.Own, Ancestors: r.task.grant.Ceiling, Idle: r.task.grant.Dropped()}
	text := fmt.Appendf(nil, "# Capabilities of %s\n\n%s", r.ID, r.toolset.palette.Tree(held))
	return r.seal().Attach(text, ".md", records.CapabilitiesName(r.ID), r.Now())
}
