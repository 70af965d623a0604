package continuation

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/audit"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// asked is what the requests for a resume and for a fork have in common.
type asked struct {
	verb    string // of what is done to the thread before, in refusals: resume, or fork
	done    string // its participle
	via     thread.Via
	message string
	limits  item.LimitSet
	person  bool
	model   string
	traceID string
	from    thread.ID
	exempt  bool
}

// renewal is a thread that is to begin with the conversation of another: it has been
// checked as any start, and nothing has changed yet.
type renewal struct {
	*Call
	asked     asked
	chain     []thread.Record // the thread before is the last
	meta      thread.Meta     // of the thread before
	left      *audit.Report   // what the thread before has left
	plan      *plan.Plan
	messages  []llm.Message    // that the new thread begins with
	counted   transcript.Count // of these messages, by a provider
	turns     int              // of the conversation before
	shortened bool
	children  []handoff.Child // that the new thread is told of, where it is
	rest      rest            // of another attempt
}

// before is the thread whose conversation it is.
func (r *renewal) before() thread.Record { return r.chain[len(r.chain)-1] }

// planning checks the new thread as any other start.
func (r *renewal) planning() *plan.Call { return r.Planner.In(r.Call.Call) }

// mayTouch refuses a thread that the one which asks has not started, and one that has
// no conversation.
func (r *renewal) mayTouch(ctx context.Context) error {
	rec := r.before()
	if r.asked.from != "" {
		if err := r.Threads.IsBelow(ctx, rec.ThreadID, r.asked.from, "so it cannot be "+r.asked.done+" from there"); err != nil {
			return err
		}
	}
	switch rec.Kind {
	case thread.KindDirective:
		return nil
	case thread.KindSet:
		return tool.Faultf(tool.CodeUnsupported, "%s is a set of threads, which has no conversation to go on with", rec.ThreadID).
			WithHint("list_threads with this parent_id shows the threads of the set").
			WithTry("rye-mcp threads list --parent %s", rec.ThreadID)
	case thread.KindTool:
	}
	return tool.Faultf(tool.CodeUnsupported, "%s is a run of the tool %s, which has no conversation to go on with", rec.ThreadID, rec.Directive).
		WithHint("rye_execute runs the tool again")
}

// verifyThread refuses to go on with what somebody has changed.
func (r *renewal) verifyThread(ctx context.Context) error {
	id := r.before().ThreadID
	verdict, report, err := r.Verify.AsSet(ctx, r.Call.Call, id)
	switch {
	case err != nil:
		return err
	case !verdict.Verified:
		return tool.Faultf(tool.CodeInvalidItem, "thread %s does not verify (%s: %s), so it cannot be %s", id,
			verdict.Findings[0].File, verdict.Findings[0].Detail, r.asked.done).
			With("findings", verdict.Findings).WithHint("rye-mcp threads verify %s shows what is wrong", id)
	case report.Meta == nil:
		return r.nothingSaid()
	}
	if from := report.Meta.Imported; from != nil {
		return tool.Faultf(tool.CodeUnsupported, "thread %s was imported from a recording that key %s has signed: it can be read, and not be %s", id,
			from.Signer, r.asked.done).WithHint("start %s with rye_execute", report.Meta.Directive).WithTry("rye-mcp run %s", report.Meta.Directive)
	}
	r.meta, r.left = *report.Meta, report
	return nil
}

func (r *renewal) nothingSaid() *tool.Fault {
	before := r.before()
	if before.Status == thread.Created {
		return tool.Faultf(tool.CodeConflict, "thread %s has not begun, so there is nothing to %s", before.ThreadID, r.asked.verb).
			With("thread_id", before.ThreadID).WithHint("rye_execute starts %s once more; wait_threads waits for this one", before.Directive).
			WithTry("rye-mcp threads wait %s", before.ThreadID)
	}
	if !before.Status.Terminal() {
		return tool.Faultf(tool.CodeConflict, "thread %s is %s and has no signed turn yet, so it cannot be %s", before.ThreadID, before.Status, r.asked.done).
			With("thread_id", before.ThreadID).
			WithHint("get_status says how many turns it has had").WithTry("rye-mcp threads show %s says how many turns it has had", before.ThreadID)
	}
	return tool.Faultf(tool.CodeUnsupported, "thread %s ended before it had begun its conversation, so there is nothing to %s", before.ThreadID, r.asked.verb).
		With("directive", before.Directive).WithHint("start %s again with rye_execute", before.Directive).WithTry("rye-mcp run %s", before.Directive)
}

// handoffs is how many there have been since a person's last message, which the one
// that is given now is unless a thread gives it.
func (r *renewal) handoffs() int {
	if r.asked.from == "" && r.asked.via != thread.ViaRetry {
		return 0
	}
	return r.meta.Continuation.HandoffsNow()
}

// checkHandoffs refuses a thread that goes on with one which could not hand over any
// more: it would be paid for until its context window is full, and then fail.
func (r *renewal) checkHandoffs(context.Context) error {
	settings, _, err := r.Config.Coordination()
	if err != nil {
		return err
	}
	done, most := r.handoffs(), settings.Continuation.MaxChain
	if done < most {
		return nil
	}
	return tool.Faultf(tool.CodeUnsupported, "thread %s cannot be %s by a thread: %w", r.meta.ThreadID, r.asked.done,
		&handoff.ChainError{Handoffs: done, Max: most}).
		With("thread_id", r.meta.ThreadID).WithHint("ask the person to %s it, or start %s again with less to do", r.asked.verb, r.meta.Directive)
}

// planStart checks directive, parent, limits and model as for a start. Inputs and
// capabilities are those of the thread before, which findParent may narrow.
func (r *renewal) planStart(ctx context.Context, findParent func(context.Context, *plan.Plan) error) error {
	p := &plan.Plan{
		Warnings: config.Strings(r.Config.LeftOut()),
		Caller:   action.Caller{Person: r.asked.person, Env: tool.Env{TraceID: r.asked.traceID}},
		Request: action.StartRequest{
			Directive: r.meta.Directive, Inputs: r.meta.Inputs, Model: cmp.Or(r.asked.model, r.meta.Model), Limits: r.asked.limits,
		},
	}
	by, err := r.planning().WorkingBy(ctx, r.asked.from)
	if err != nil {
		return err
	}
	if err := by.FindDirective(p); err != nil {
		return err
	}
	p.Inputs = OwnInputs(r.meta.Inputs)
	if secrets := inputs.Secrets(p.Doc, p.Inputs); len(secrets) > 0 {
		return tool.Faultf(tool.CodeUnsupported, "thread %s had secret inputs (%s), whose values are kept nowhere, so it cannot be %s",
			r.meta.ThreadID, strings.Join(secrets, ", "), r.asked.done).
			With("directive", r.meta.Directive).WithHint("start %s again with rye_execute", r.meta.Directive).WithTry("rye-mcp run %s", r.meta.Directive)
	}
	if err := by.Inherit(p, r.meta.ThreadID); err != nil {
		return err
	}
	p.Grant = permission.Grant{Own: r.meta.Own(), Ceiling: r.meta.Ceiling}
	if err := findParent(ctx, p); err != nil {
		return err
	}
	p.Dropped = p.Grant.Dropped()
	p.DroppedWhy = plan.WhyDropped(p.Grant, p.Dropped)
	if err := r.planning().JudgeRisk(p); err != nil { // by the settings as they are now
		return err
	}
	if err := r.planMeans(ctx, p); err != nil {
		return err
	}
	r.planning().TellOnce(p)
	return nil
}

// planMeans decides what the thread may use, and with which model it begins.
func (r *renewal) planMeans(ctx context.Context, p *plan.Plan) error {
	first, err := r.firstLimits(ctx)
	if err != nil {
		return err
	}
	began := *p.Doc
	began.Limits = limit.Set(first)
	p.Doc = &began
	if err := r.planning().ResolveLimits(p); err != nil {
		return err
	}
	_, p.SpendAsked = r.asked.limits["spend"]
	r.plan = p
	if r.asked.message == "" && r.asked.via != thread.ViaRetry { // nothing is run
		return r.planning().KeepModel(ctx, p)
	}
	if err := r.planning().ChooseModel(ctx, p); err != nil {
		return err
	}
	if err := r.planning().HaveKey(ctx, p); err != nil {
		return err
	}
	return r.planning().TakeItems(ctx, p)
}

// canStart reports whether a thread, or the one that continues it, can start the
// new one: it runs, and is the thread that asks, if one does, or below that.
func (r *renewal) canStart(ctx context.Context, id thread.ID) (rec thread.Record, fit bool, err error) {
	if id == "" {
		return rec, false, nil
	}
	rec, err = r.Threads.LookAsked(ctx, id)
	if errors.Is(err, thread.ErrNotFound) {
		return rec, false, nil
	}
	runs := rec.Status == thread.Running && rec.CancelRequestedAt.IsZero()
	if err != nil || !runs || r.asked.from == "" {
		return rec, runs, err
	}
	asks, err := lineage.Resolve(r.asked.from, r.Threads.Getter(ctx))
	if err != nil || asks.ThreadID == rec.ThreadID {
		return rec, err == nil, err
	}
	fit, err = lineage.IsBelow(rec.ThreadID, asks.ThreadID, r.Threads.Getter(ctx))
	return rec, fit, err
}

// mayStart refuses a directive that the thread which asks has no capability to
// start: a hook of the system may have started it there.
func (r *renewal) mayStart(p *plan.Plan) error {
	if r.asked.from == "" || r.asked.exempt {
		return nil
	}
	asks, err := r.Planner.ParentMeta(r.asked.from)
	if err != nil {
		return err
	}
	return plan.MayStart(r.asked.from, permission.Grant{Own: asks.Own(), Ceiling: asks.Ceiling}, p.Found)
}

// firstLimits are those that the chain was started with, or resumed with last: a
// thread that was handed over to only had what was left of them.
func (r *renewal) firstLimits(ctx context.Context) (thread.Limits, error) {
	if r.asked.via == thread.ViaRetry { // as one that was handed over to
		return r.restOf(ctx)
	}
	at := len(r.chain) - 1
	for at > 0 && threads.ViaOf(r.chain[at-1], r.chain[at]) != thread.ViaResume {
		at--
	}
	if meta, err := r.Threads.OwnMeta(r.chain[at].ThreadID); err == nil {
		return meta.Limits, nil
	}
	return r.meta.Limits, nil
}

// readConversation reads what was said in the thread before.
func (r *renewal) readConversation(until transcript.Until) error {
	left := r.Threads.Records.Of(r.before().ThreadID)
	said, counted, err := transcript.Rebuild(left.Transcript(), left.Artifacts(), until)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(said) == 0 {
		return r.nothingSaid()
	}
	r.messages, r.counted, r.turns = said, counted, handoff.Turns(said)
	return nil
}

// inContext is how many tokens conversation and message take up: what the provider has
// counted, and an estimate of what came since. The counts of another model are of other
// tokens, so that all is estimated too, with what is fixed, and the larger counts.
func (r *renewal) inContext(fixed func() (int64, error)) (int64, error) {
	known := thread.Sum(r.counted.Tokens, handoff.Tokens(r.messages[r.counted.Messages:]...), r.messageTokens())
	if r.counted.Tokens > 0 && r.counted.Model == r.plan.Choice.Ref() {
		return known, nil
	}
	beside, err := fixed()
	return max(known, thread.Sum(handoff.Tokens(r.messages...), beside)), err
}

func (r *renewal) messageTokens() int64 { return handoff.Tokens(llm.Text(llm.User, r.asked.message)) }

// fixed is what the first request of the new thread has beside the conversation that it
// takes over: the system prompt, the tools and the message.
func (r *renewal) fixed() (int64, error) {
	first, err := r.planning().FirstRequest(r.plan)
	if err != nil || first == nil {
		return r.messageTokens(), err
	}
	return thread.Sum(first.System, first.Tools, r.messageTokens()), nil
}

// shorten puts what a handoff gives in the place of a conversation that is too long.
func (r *renewal) shorten(ctx context.Context) error {
	settings, _, err := r.Config.Coordination()
	if err != nil {
		return err
	}
	fixed := sync.OnceValues(r.fixed) // the palette is built for it
	used, err := r.inContext(fixed)
	if err != nil || limit.ContextShare(r.plan.Choice.Model, used, 0) < settings.Continuation.TriggerThreshold {
		return err
	}
	beside, err := fixed()
	if err != nil {
		return err
	}
	m, err := r.manifest(ctx, r.chain, r.meta, r.asked.via, settings.Continuation.SummaryDirective)
	if err != nil {
		return err
	}
	in, _, err := r.Planner.PromptInput(r.plan, r.meta.Directive)
	if err != nil {
		return err
	}
	in.Capabilities = r.meta.Capabilities
	_, m.Task = prompt.Build(in)
	_, window := limit.ContextUse(r.plan.Choice.Model, 0, 0)
	r.messages, _ = handoff.Compose(m, "", r.messages, handoff.Ceiling(settings.Continuation.ResumeCeilingTokens, window, beside))
	r.shortened, r.children, r.counted = true, m.Children, transcript.Count{}
	return nil
}

// reserve gives the registered thread its budget.
func (r *renewal) reserve(ctx context.Context, rec thread.Record) error {
	return r.Queue.In(r.Call.Call).Reserve(ctx, r.plan, rec.ThreadID)
}

// metaOf is the thread.json of the new thread, which has that place in its chain.
func (r *renewal) metaOf(rec thread.Record, position int) thread.Meta {
	now := r.plan.Meta(rec)
	meta := continued(r.meta, rec, thread.Continuation{
		Via: r.asked.via, Position: position, Handoffs: r.handoffs(), Messages: len(r.messages), Message: r.asked.message,
	})
	meta.Limits, meta.Warnings, meta.TraceID = now.Limits, now.Warnings, now.TraceID
	if r.asked.via == thread.ViaRetry { // other bounds of the attempt are no use of the limits
		whole := limit.Raised(r.rest.whole, r.rest.limits, now.Limits)
		meta.Continuation.Whole = &whole
	}
	meta.DirectivePath, meta.DirectiveHash, meta.Space = now.DirectivePath, now.DirectiveHash, now.Space
	meta.Chain, meta.Route, meta.Snapshot = now.Chain, now.Route, now.Snapshot
	if meta.Retry = now.Retry; r.asked.from == "" { // a person begins anew, a model does not
		meta.Attempt = 0
	}
	return meta
}
