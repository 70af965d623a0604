package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/guard"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// The inputs of a summary directive. It is given those that it declares.
const (
	inputThread     = "thread_id"
	inputTranscript = "transcript_content" // rendered; the newest part, see [contentRoom]
	inputMaxTokens  = "max_summary_tokens"
)

// outputSummary is the output that has the summary, of a directive that declares
// it; else its result does.
const outputSummary = "summary"

// maxContent is the most of a transcript that is summed up, in bytes: as a part of
// the prompt it is sent with every turn.
const maxContent = 400_000

const charsPerToken = 4

// summary is what was written about the thread's work for its successor; it is empty
// when nobody has written anything.
type summary struct {
	id   string // as [finish.SummaryID] makes it
	text string
	why  string // there is none, although somebody was to write one
}

// summarizer writes the summary that the successor of a run is given.
type summarizer struct{ *run }

// errSummaryLate ends a summary for which the handoff does not wait any longer.
var errSummaryLate = errors.New("it took more than half of the thread's time")

// summarise gives the successor a summary. A handoff needs none, so a failure is a
// warning, once there is a successor. It takes at most half of the time that is left.
func (r summarizer) summarise(ctx context.Context) summary {
	if r.Recorded != nil { // whose successor nobody makes
		return summary{}
	}
	bounded, stop := context.WithTimeoutCause(ctx, r.timeLeft()/2, errSummaryLate)
	defer stop()
	id := finish.SummaryID(r.meta.Directive, r.ID)
	text, err := r.findOrWriteSummary(bounded, id)
	if err != nil {
		return summary{why: r.Secrets.Mask(err.Error())}
	}
	if text == "" {
		return summary{}
	}
	return summary{id: id, text: text}
}

// findOrWriteSummary is the summary that the thread's hooks have written, else that
// of the summary directive, where the settings name one; else empty. The
// directive writes again what cannot be used of the hooks. A thread of the summary directive itself
// is not summed up.
func (r summarizer) findOrWriteSummary(ctx context.Context, id string) (string, error) {
	text, err := r.writtenSummary(id)
	wanted := r.Settings.Continuation.SummaryDirective
	if text != "" || wanted == "" || wanted == r.meta.Directive {
		return text, err
	}
	if err != nil {
		r.warn("the summary that was there is not used: " + r.Secrets.Mask(err.Error()))
	}
	text, err = r.runSummary(ctx, wanted)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("continuation.summary_directive %s: %w", wanted, err)
	}
	return text, nil
}

// writtenSummary is the text of a summary that is there already; empty when there
// is none. Its author may be anybody, so the trust gate is asked.
func (r summarizer) writtenSummary(id string) (string, error) {
	written, err := hookRunner(r).load(item.Knowledge, finish.KnowledgeID(id))
	if _, none := errors.AsType[*resolve.NotFoundError](err); none {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return r.cutSummary(written.Text), nil
}

// runSummary has the summary directive write a summary, in a child of the thread
// that needs no capability of it, and keeps it as knowledge.
func (r summarizer) runSummary(ctx context.Context, directive string) (string, error) {
	request, err := r.summaryRequest(ctx, directive)
	if err != nil {
		return "", err
	}
	child, err := r.startSummary(ctx, request)
	if err != nil {
		return "", err
	}
	rec, err := r.lastOf(ctx, child)
	if err != nil {
		return "", err
	}
	if !rec.Status.Terminal() {
		return "", fmt.Errorf("thread %s has not ended in time", rec.ThreadID)
	}
	if err := problemOf(rec); err != nil {
		return "", err
	}
	text := r.cutSummary(summaryOf(rec.Outcome))
	if text == "" {
		return "", fmt.Errorf("thread %s returned nothing", rec.ThreadID)
	}
	own, err := r.Store.Get(ctx, r.ID)
	if err != nil {
		return "", err
	}
	return text, r.Finisher.WriteSummary(own, text)
}

// summaryOf is the text that a summary directive has returned.
func summaryOf(o *thread.Outcome) string {
	if text, ok := o.Outputs[outputSummary].(string); ok {
		return text
	}
	return o.Result
}

// startSummary starts a child and waits for it.
func (r summarizer) startSummary(ctx context.Context, request action.ExecuteRequest) (child thread.ID, err error) {
	caller := action.Caller{
		Env: r.env(), InThread: true, Allow: r.allow,
		Hook: &action.HookCall{Exempt: true, Firing: r.meta.Firing, Ended: r.hooks.ended.Load()},
		Started: func(id thread.ID, directive string) {
			child = id
			r.put(thread.EventChildThreadStarted, transcript.ChildStarted{ThreadID: id, Directive: directive})
			r.Crashpoints.At(CrashChild)
		},
	}
	_, err = r.await(ctx, request.ItemID, func() (any, error) { return r.Actions.Execute(ctx, caller, request) })
	if err == nil && child == "" {
		err = fmt.Errorf("bug; %s was started and is no thread", request.ItemID)
	}
	return child, err
}

func (r summarizer) summaryRequest(ctx context.Context, directive string) (action.ExecuteRequest, error) {
	var request action.ExecuteRequest
	found, err := r.Resolver.Find(item.Directive, directive)
	if err != nil {
		return request, err
	}
	doc, err := found.Directive()
	if err != nil {
		return request, err
	}
	settings := r.Settings.Continuation
	given, err := r.summaryInputs(ctx, doc)
	if err != nil {
		return request, err
	}
	parameters, err := json.Marshal(given)
	if err != nil {
		return request, err
	}
	return action.ExecuteRequest{
		ItemType: string(item.Directive), ItemID: directive, Thread: "fork", Parameters: tool.Object(parameters),
		Model: settings.SummaryModel, Limits: settings.SummaryLimitOverrides,
	}, nil
}

// summaryInputs are the inputs that a summary directive declares, of those there
// are.
func (r summarizer) summaryInputs(ctx context.Context, doc *item.DirectiveDoc) (map[string]any, error) {
	declares := func(name string) bool {
		return slices.ContainsFunc(doc.Inputs, func(in item.Input) bool { return in.Name == name })
	}
	given := map[string]any{}
	if declares(inputThread) {
		given[inputThread] = string(r.ID)
	}
	if declares(inputMaxTokens) {
		given[inputMaxTokens] = r.Settings.Continuation.SummaryMaxTokens
	}
	if !declares(inputTranscript) {
		return given, nil
	}
	choice, err := r.Providers.Choose(ctx, provider.Want{
		Override: r.Settings.Continuation.SummaryModel,
		Provider: doc.Model.Provider, Tier: doc.Model.Tier, ID: doc.Model.ID, Fallback: doc.Model.Fallback,
	})
	if err != nil {
		return nil, err
	}
	given[inputTranscript], err = r.transcriptContent(contentRoom(choice.Model, r.summarySpend(doc)))
	return given, err
}

// summarySpend is what the thread of a summary directive may spend, as far as
// anybody says; else 0.
func (r summarizer) summarySpend(doc *item.DirectiveDoc) thread.Micros {
	dollars, said := r.Settings.Continuation.SummaryLimitOverrides["spend"]
	if !said {
		dollars = doc.Limits["spend"]
	}
	return thread.Micros(dollars * thread.MicrosPerDollar)
}

// contentRoom is how much of a transcript a model can be expected to read, in
// bytes: half of its context window, and half of what can be paid for when every
// byte counts as a token, as it does where a call is bounded.
func contentRoom(reader llm.Model, spend thread.Micros) int64 {
	_, window := limit.ContextUse(reader, 0, 0)
	room := min(maxContent, window/2*charsPerToken)
	if price := reader.Price.MaxInput(); price > 0 && spend > 0 {
		room = min(room, int64(float64(spend)/float64(price)*1e6/2))
	}
	return room
}

// inElement is where summary directives put the transcript, which does not end it.
const inElement = "transcript"

// transcriptContent is the newest part of the thread's transcript, of so many
// bytes, in whole lines.
func (r summarizer) transcriptContent(most int64) (string, error) {
	var all strings.Builder
	if err := transcript.Render(r.records().Transcript(), &all); err != nil {
		return "", err
	}
	text := guard.Inside(inElement, all.String())
	over := len(text) - int(most)
	if over <= 0 {
		return text, nil
	}
	_, rest, _ := strings.Cut(text[over:], "\n")
	return "[the beginning of the transcript is left out]\n\n" + rest, nil
}

// cutSummary is a summary without secrets and within what a successor is to be
// given of it.
func (r summarizer) cutSummary(text string) string {
	most := r.Settings.Continuation.SummaryMaxTokens * charsPerToken
	return guard.Shorten(strings.TrimSpace(guard.Clean(r.Secrets.Mask(text))), int(most), "the rest is left out")
}
