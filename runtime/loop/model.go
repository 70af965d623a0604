package loop

import (
	"context"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// model is the model that is asked, with the client that reaches it.
type model struct {
	choice   provider.Choice
	client   llm.Client
	close    func() error
	toolText string // instructions for a model that calls tools in text; empty: natively
	fallback bool   // the directive's second choice has been turned to
}

// openModel opens the client of a choice in place of the one before.
func (r *run) openModel(ctx context.Context, choice provider.Choice) error {
	if choice.Unpriced() {
		return tool.Faultf(tool.CodeUnpriced, "model %s has no price, so no spend limit can be kept", choice.Ref())
	}
	client, closeClient, err := r.Providers.Open(ctx, choice)
	if err != nil {
		return fmt.Errorf("open model %s: %w", choice.Ref(), err)
	}
	r.closeModel()
	r.model = model{choice: choice, client: client, close: closeClient, fallback: r.model.fallback}
	if choice.ToolUse == config.ToolUseText {
		r.model.toolText = toolInstructions(r.offer.tools)
	}
	return nil
}

func (r *run) closeModel() {
	if r.model.close == nil {
		return
	}
	if err := r.model.close(); err != nil {
		r.Log.Warn().Err(err).Msg("close the model client")
	}
	r.model.close = nil
}

// fallBack turns to the directive's second choice, once, when the first has
// failed for good. It reports whether there is one that may be used.
func (r *run) fallBack(ctx context.Context) bool {
	if r.model.fallback {
		return false
	}
	r.model.fallback = true
	choice, named, err := r.Providers.Fallback(ctx, provider.Want{Fallback: r.task.doc.Model.Fallback})
	if err == nil && !named {
		return false
	}
	if err == nil {
		err = r.openModel(ctx, choice)
	}
	if err != nil {
		r.Log.Warn().Err(err).Msg("fall back to the second model")
		return false
	}
	r.failing = 0
	r.talk.recount()
	return true
}
