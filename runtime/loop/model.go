package loop

import (
	"context"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
)

// model is the model that is asked, with the client that reaches it.
type model struct {
	choice   provider.Choice
	client   llm.Client
	close    func() error
	fallback bool // the directive's second choice has taken over
}

// openModel chooses a model and opens its client in place of the one before.
func (r *run) openModel(ctx context.Context, want provider.Want) error {
	choice, err := r.Providers.Choose(ctx, want)
	if err != nil {
		return err
	}
	if !choice.Model.Priced && !choice.Local && !choice.AllowUnpriced {
		return fmt.Errorf("model %s has no price, so no spend limit can be kept", choice.Ref())
	}
	client, closeClient, err := r.Providers.Open(ctx, choice)
	if err != nil {
		return fmt.Errorf("open model %s: %w", choice.Ref(), err)
	}
	r.closeModel()
	r.model = model{choice: choice, client: client, close: closeClient, fallback: r.model.fallback}
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
	second := r.task.doc.Model.Fallback
	if second == "" || r.model.fallback {
		return false
	}
	r.model.fallback = true
	if err := r.openModel(ctx, provider.Want{Override: second}); err != nil {
		r.Log.Warn().Err(err).Str("model", second).Msg("fall back to the second model")
		return false
	}
	r.failing = 0
	return true
}
