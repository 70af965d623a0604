package loop

import (
	"context"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/textcalls"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// model is the model that is asked, with the client that reaches it.
type model struct {
	choice   provider.Choice
	client   llm.Client
	close    func() error
	fallback bool          // the directive's second choice has been turned to
	instead  string        // why it is asked in the place of the first, until that is told
	seen     []llm.Message // of the conversation, as the model is given them
	toldCut  bool          // that its server cuts requests off
	// toolSize is what tools take of a request to it, in bytes and in characters.
	toolSize func([]llm.Tool) (bytes, characters int64)
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
	r.model = model{
		choice: choice, client: client, close: closeClient, fallback: r.model.fallback, toolSize: opening.SizeOf(choice.ToolUse),
	}
	if choice.ToolUse == config.ToolUseText {
		r.model.client = textcalls.New(client, r.offers)
	}
	return nil
}

// offers says whether the model is offered a tool of that name.
func (r *run) offers(name string) bool {
	_, offered := r.toolset.palette.Get(name)
	return offered
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
// failed for good or too often. It reports whether it did; if there is a second
// choice that cannot be used, why says so.
func (r *run) fallBack(ctx context.Context, f *failure) (turned bool, why string, err error) {
	if r.model.fallback || f.rule.Category == config.CategoryCancelled {
		return false, "", nil
	}
	r.model.fallback = true
	first := r.model.choice
	second, named, err := r.Providers.Fallback(ctx, provider.Want{Fallback: r.task.doc.Model.Fallback})
	if err == nil && (!named || second.Ref() == first.Ref()) { // a call may name the fallback as its model
		return false, "", nil
	}
	if err == nil && f.rule.Category == config.CategoryContext && !larger(second.Model, first.Model) {
		return false, fmt.Sprintf("the context window of the fallback %s is no larger", second.Ref()), nil
	}
	if err == nil {
		err = r.fits(ctx, second)
	}
	if err == nil {
		err = r.openModel(ctx, second)
	}
	if err != nil {
		r.Log.Warn().Err(err).Msg("fall back to the second model")
		return false, "the fallback cannot be used: " + err.Error(), nil
	}
	r.model.instead = fmt.Sprintf("%s failed (%s)", first.Ref(), f.rule.Category)
	r.recovery.failing = 0
	r.conversation.recount()
	r.Log.Warn().Err(f.err).Int("turn", f.turn).Str("model", second.Ref()).Msg("another model is asked")
	return true, "", r.Transcript.Append(thread.EventRetry, transcript.Retry{
		Turn: f.turn, Attempt: 1, Model: second.Ref(), Reason: "falling back to " + second.Ref(),
	})
}

// warnOfCall tells what the thread's result alone does not say: what a request was sent
// without, which no later call says again; that another model than the first has answered;
// and that nobody knows what an answer has used, which of one that was broken off says
// nothing of its provider.
func warnOfCall(r *run, c *call) {
	for _, w := range c.answer.Warnings {
		r.warn(w)
	}
	if c.err != nil || c.answer.StopReason == llm.StopFailed {
		return
	}
	model := r.model.choice.Ref()
	if r.model.instead != "" {
		r.warn(fmt.Sprintf("%s has answered from turn %d on: %s", model, r.cost.Turns, r.model.instead))
		r.model.instead = ""
	}
	if !c.answer.Usage.Reported {
		r.warn(model + " reports no usage: each call counts as the most that it can have used, in tokens and money")
	}
}

// larger reports whether a has a larger context window than b.
func larger(a, b llm.Model) bool {
	return limit.ContextShare(a, 1, 0) < limit.ContextShare(b, 1, 0)
}

// fits reports why another model cannot take over the conversation: too long for
// its context window, or too dear for what is left.
func (r *run) fits(ctx context.Context, choice provider.Choice) error {
	budget, err := r.Store.Budget(ctx, r.ID)
	if err != nil {
		return err
	}
	whole := r.conversation
	whole.recount()
	tools, _ := opening.SizeOf(choice.ToolUse)(r.toolset.tools)
	_, err = limit.Allowance(limit.AllowanceInput{
		Limits: r.meta.Limits, Used: r.cost, Left: budget.Remaining(),
		Model: choice.Model, NewBytes: whole.newBytes + int64(len(r.system)) + tools, Wanted: choice.MaxOutput,
	})
	return err
}
