package continuation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ResumeRequest asks for a thread that continues one that has ended.
type ResumeRequest struct {
	ThreadID thread.ID // any of its chain
	Message  string    // what the new thread is told
	Limits   item.LimitSet
	Person   bool // a person at a terminal asks; see [action.Caller]
	Origin   thread.Origin
	Model    string // empty: the one it had
	TraceID  string // of the request this goes back to; may be empty
	// From is the thread that asks, which may resume threads below it only. Empty:
	// whoever works with the project, or the thread that this process runs in.
	From   thread.ID
	Exempt bool // a hook of From asks that needs no capability of it
}

// Resumed is the answer to resume_thread.
type Resumed struct {
	Success            bool         `json:"success"`
	Resumed            bool         `json:"resumed"`
	OldThreadID        thread.ID    `json:"old_thread_id" jsonschema:"the thread that is continued"`
	NewThreadID        thread.ID    `json:"new_thread_id" jsonschema:"the thread that continues it"`
	OriginalThreadID   any          `json:"original_thread_id" jsonschema:"the asked thread, when its successor was resumed instead; else null"` // schemas of ids allow no null
	ResolvedThreadID   thread.ID    `json:"resolved_thread_id" jsonschema:"the thread that was resumed: the newest of the chain"`
	Directive          string       `json:"directive"`
	ReconstructedTurns int          `json:"reconstructed_turns" jsonschema:"turns of the conversation before"`
	Shortened          bool         `json:"shortened,omitempty" jsonschema:"the conversation is too long for the model: the new thread has a record of the work and the last turns"`
	NewThreadResult    view.Started `json:"new_thread_result"`
	Next               string       `json:"next,omitempty" jsonschema:"what to call next"`
}

// StartedThread tells the caller's own thread which child it has started.
func (r Resumed) StartedThread() thread.ID { return r.NewThreadID }

// Resume starts a thread that continues the newest of a chain, which must have
// ended: with the same directive, inputs and capabilities, and the whole
// conversation, to which a message is added. It is a sibling of that thread while
// the parent runs, and a root afterwards, or a child of the thread that asks.
// It is not waited for.
//
// All or nothing, as a start. Of several that resume the same thread one succeeds.
func (c *Continuer) Resume(ctx context.Context, req ResumeRequest) (Resumed, error) {
	r, err := c.planResume(ctx, req)
	defer r.letOthers()
	if err != nil {
		return Resumed{}, threads.Fault(err)
	}
	before := r.before()
	n := store.NewThread{
		Kind: before.Kind, Directive: before.Directive, Name: before.Name, ParentID: r.plan.Request.Parent,
		ContinuationOf: before.ThreadID, Model: r.plan.Choice.Ref(), Now: c.Threads.Now(),
		Origin: req.Origin,
	}
	if r.plan.Parent != nil {
		n.MaxSpawns, n.Origin = r.plan.Parent.Limits.Spawns, thread.Origin{}
	}
	started, err := r.Queue.In(r.Call.Call).Launch(ctx, n, nil, r.prepare)
	if err != nil {
		return Resumed{}, err
	}
	c.recordResumed(context.WithoutCancel(ctx), r, started.ThreadID)
	answer := Resumed{
		Success: started.Success, Resumed: true, OldThreadID: before.ThreadID, NewThreadID: started.ThreadID, ResolvedThreadID: before.ThreadID,
		Directive: before.Directive, ReconstructedTurns: r.turns, Shortened: r.shortened, NewThreadResult: started, Next: started.Next,
	}
	if req.ThreadID != before.ThreadID {
		answer.OriginalThreadID = req.ThreadID
	}
	return answer, nil
}

// resumption is a resume that has been checked and has changed nothing yet.
type resumption struct {
	*Call
	request   ResumeRequest
	chain     []thread.Record // the thread that is continued is the last
	meta      thread.Meta     // of that thread
	plan      *plan.Plan
	messages  []llm.Message // that the new thread begins with
	turns     int           // of the conversation before
	shortened bool
	lease     life.Hold // keeps others from resuming the thread meanwhile
}

func (r *resumption) before() thread.Record { return r.chain[len(r.chain)-1] }

// planning checks the new thread as any other start.
func (r *resumption) planning() *plan.Call { return r.Planner.In(r.Call.Call) }

// planResume checks everything a caller can have got wrong.
func (c *Continuer) planResume(ctx context.Context, req ResumeRequest) (*resumption, error) {
	if strings.TrimSpace(req.Message) == "" {
		return &resumption{}, tool.Faultf(tool.CodeBadArguments, "message is empty; say how the thread is to continue")
	}
	req.From = cmp.Or(req.From, c.Threads.Parent)
	r := &resumption{Call: c.In(c.Settings.Begin()), request: req}
	for _, step := range []func(context.Context) error{
		r.findThread, r.keepOthers, r.verifyThread, r.checkHandoffs, r.planStart, r.rebuild,
	} {
		if err := step(ctx); err != nil {
			return r, err
		}
	}
	return r, nil
}

// findThread finds the newest thread of the chain, which must have ended.
func (r *resumption) findThread(ctx context.Context) (err error) {
	if r.chain, err = r.Threads.Chain(ctx, r.request.ThreadID); err != nil {
		return err
	}
	rec := r.before()
	if r.request.From != "" {
		if err := r.Threads.IsBelow(ctx, rec.ThreadID, r.request.From, "so it cannot be resumed from there"); err != nil {
			return err
		}
	}
	switch {
	case rec.Kind != thread.KindDirective:
		return tool.Faultf(tool.CodeUnsupported, "%s is a run of the tool %s, which has no conversation to go on with", rec.ThreadID, rec.Directive).
			WithHint("rye_execute runs the tool again")
	case !rec.Status.Terminal():
		return tool.Faultf(tool.CodeConflict, "thread %s is %s; only one that has ended can be resumed", rec.ThreadID, rec.Status).
			With("thread_id", rec.ThreadID).WithHint("wait_threads until it has ended, or cancel_thread to end it")
	case len(lineage.Linked(r.chain)) < len(r.chain):
		// Its words are those of a thread that others continue, or still runs.
		return tool.Faultf(tool.CodeUnsupported, "thread %s never came to continue %s, so there is nothing of its own to resume",
			rec.ThreadID, rec.ContinuationOf).With("resumable", rec.ContinuationOf).WithHint("resume_thread of %s", rec.ContinuationOf)
	}
	return nil
}

// resumeLease is the lease of those who resume a thread.
func resumeLease(id thread.ID) string { return string(id) + "/resume" }

// keepOthers refuses when somebody else is about to resume the thread, so that of
// several callers one alone makes a thread and the others leave nothing. The lease
// ends with this process, however it ends.
func (r *resumption) keepOthers(ctx context.Context) (err error) {
	id := r.before().ThreadID
	r.lease, err = r.Threads.Life.Lease(resumeLease(id))
	switch {
	case errors.Is(err, life.ErrHeld):
		return tool.Faultf(tool.CodeConflict, "thread %s is being resumed by another call", id).With("thread_id", id).
			WithHint("wait_threads of %s waits for the thread that continues it; resume that when it has ended", id)
	case errors.Is(err, fs.ErrNotExist): // without a folder it does not verify
		return nil
	case err != nil:
		return err
	}
	now, err := r.Threads.Store.Get(ctx, id)
	if err == nil && now.ContinuationThreadID != "" { // since the chain was read
		err = &store.LinkedError{Thread: id, By: now.ContinuationThreadID}
	}
	return err
}

func (r *resumption) letOthers() {
	if r.lease != nil {
		_ = r.lease.Release()
	}
}

// verifyThread refuses to go on with what somebody has changed.
func (r *resumption) verifyThread(ctx context.Context) error {
	id := r.before().ThreadID
	verdict, report, err := r.Verify.AsSet(ctx, r.Call.Call, id)
	switch {
	case err != nil:
		return err
	case !verdict.Verified:
		return tool.Faultf(tool.CodeInvalidItem, "thread %s does not verify (%s: %s), so it cannot be resumed", id,
			verdict.Findings[0].File, verdict.Findings[0].Detail).
			With("findings", verdict.Findings).WithHint("rye-mcp threads verify %s shows what is wrong", id)
	case report.Meta == nil:
		return errNothingSaid(id, r.before().Directive)
	}
	r.meta = *report.Meta
	return nil
}

// handoffs is how many there have been since a person's last message, which the one
// that is given now is unless a thread gives it.
func (r *resumption) handoffs() int {
	if r.request.From == "" {
		return 0
	}
	return r.meta.Continuation.HandoffsNow()
}

// checkHandoffs refuses a thread that resumes one which could not hand over any
// more: it would be paid for until its context window is full, and then fail.
func (r *resumption) checkHandoffs(context.Context) error {
	settings, _, err := r.Config.Coordination()
	if err != nil {
		return err
	}
	done, most := r.handoffs(), settings.Continuation.MaxChain
	if done < most {
		return nil
	}
	return tool.Faultf(tool.CodeUnsupported, "thread %s cannot be resumed by a thread: %w", r.meta.ThreadID,
		&handoff.ChainError{Handoffs: done, Max: most}).
		With("thread_id", r.meta.ThreadID).WithHint("ask the person to resume it, or start %s again with less to do", r.meta.Directive)
}

func errNothingSaid(id thread.ID, directive string) *tool.Fault {
	return tool.Faultf(tool.CodeUnsupported, "thread %s ended before it had begun its conversation, so there is nothing to resume", id).
		With("directive", directive).WithHint("start %s again with rye_execute", directive)
}

// planStart checks directive, parent, limits and model as for a start. Inputs and
// capabilities are those of the thread before.
func (r *resumption) planStart(ctx context.Context) error {
	p := &plan.Plan{
		Warnings: config.Strings(r.Config.LeftOut()),
		Caller:   action.Caller{Person: r.request.Person, Env: tool.Env{TraceID: r.request.TraceID}},
		Request: action.StartRequest{
			Directive: r.meta.Directive, Inputs: r.meta.Inputs, Model: cmp.Or(r.request.Model, r.meta.Model),
			Limits: r.request.Limits,
		},
	}
	if err := r.planning().FindDirective(p); err != nil {
		return err
	}
	p.Inputs = ownInputs(r.meta.Inputs)
	if secrets := inputs.Secrets(p.Doc, p.Inputs); len(secrets) > 0 {
		return tool.Faultf(tool.CodeUnsupported, "thread %s had secret inputs (%s), whose values are kept nowhere, so it cannot be resumed",
			r.meta.ThreadID, strings.Join(secrets, ", ")).With("directive", r.meta.Directive).
			WithHint("start %s again with rye_execute", r.meta.Directive)
	}
	if err := r.planning().Inherit(p); err != nil {
		return err
	}
	p.Grant = permission.Grant{Own: r.meta.Own(), Ceiling: r.meta.Ceiling}
	p.Dropped = p.Grant.Dropped()
	p.DroppedWhy = plan.WhyDropped(p.Grant, p.Dropped)
	if err := r.findParent(ctx, p); err != nil {
		return err
	}
	if err := r.planning().JudgeRisk(p); err != nil { // by the settings as they are now
		return err
	}
	began := *p.Doc
	began.Limits = limit.Set(r.firstLimits())
	p.Doc = &began
	if err := r.planning().ResolveLimits(p); err != nil {
		return err
	}
	_, p.SpendAsked = r.request.Limits["spend"]
	r.plan = p
	if err := r.planning().ChooseModel(ctx, p); err != nil {
		return err
	}
	return r.planning().HaveKey(ctx, p)
}

// findParent finds the parent of the new thread: that of the thread before, or
// its successor, while it runs; else the thread that asks; else nobody. So a
// thread always pays for what it resumes from its own budget or one below.
func (r *resumption) findParent(ctx context.Context, p *plan.Plan) error {
	for _, id := range []thread.ID{r.before().ParentID, r.request.From} {
		rec, fit, err := r.canStart(ctx, id)
		if err != nil {
			return err
		}
		if !fit {
			continue
		}
		p.Request.Parent = rec.ThreadID
		if p.Parent, err = r.Planner.ParentMeta(rec.ThreadID); err != nil {
			return err
		}
		return r.mayResume(p)
	}
	if from := r.request.From; from != "" {
		return fmt.Errorf("%w: %s, which asks, has ended or is asked to stop", store.ErrParentGone, from)
	}
	return nil
}

// canStart reports whether a thread, or the one that continues it, can start the
// new one: it runs, and is the thread that asks, if one does, or below that.
func (r *resumption) canStart(ctx context.Context, id thread.ID) (rec thread.Record, fit bool, err error) {
	if id == "" {
		return rec, false, nil
	}
	rec, err = r.Threads.LookAsked(ctx, id)
	if errors.Is(err, thread.ErrNotFound) {
		return rec, false, nil
	}
	runs := rec.Status == thread.Running && rec.CancelRequestedAt.IsZero()
	if err != nil || !runs || r.request.From == "" {
		return rec, runs, err
	}
	asks, err := lineage.Resolve(r.request.From, r.Threads.Getter(ctx))
	if err != nil || asks.ThreadID == rec.ThreadID {
		return rec, err == nil, err
	}
	fit, err = lineage.IsBelow(rec.ThreadID, asks.ThreadID, r.Threads.Getter(ctx))
	return rec, fit, err
}

// mayResume refuses a directive that the thread which asks has no capability to
// start: a hook of the system may have started it there.
func (r *resumption) mayResume(p *plan.Plan) error {
	if r.request.From == "" || r.request.Exempt {
		return nil
	}
	asks, err := r.Planner.ParentMeta(r.request.From)
	if err != nil {
		return err
	}
	return plan.MayStart(r.request.From, permission.Grant{Own: asks.Own(), Ceiling: asks.Ceiling}, p.Found)
}

// firstLimits are those that the chain was started with, or resumed with last: a
// thread that was handed over to only had what was left of them.
func (r *resumption) firstLimits() thread.Limits {
	at := len(r.chain) - 1
	for at > 0 && threads.ViaOf(r.chain[at-1]) == thread.ViaHandoff {
		at--
	}
	if meta, err := r.Threads.OwnMeta(r.chain[at].ThreadID); err == nil {
		return meta.Limits
	}
	return r.meta.Limits
}

// rebuild makes the messages that the new thread begins with: the whole
// conversation, or as much of it as a handoff gives when it is too long.
func (r *resumption) rebuild(ctx context.Context) error {
	before := r.before()
	said, err := r.Threads.Messages(before.ThreadID)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(said) == 0 {
		return errNothingSaid(before.ThreadID, before.Directive)
	}
	r.turns = handoff.Turns(said)
	settings, _, err := r.Config.Coordination()
	if err != nil {
		return err
	}
	r.messages = said
	if limit.ContextShare(r.plan.Choice.Model, r.tokens(said), 0) < settings.Continuation.TriggerThreshold {
		return nil
	}
	m, err := r.manifest(ctx, r.chain, r.meta, thread.ViaResume, settings.Continuation.SummaryDirective)
	if err != nil {
		return err
	}
	in, _, err := r.Planner.PromptInput(r.plan, r.meta.Directive)
	if err != nil {
		return err
	}
	in.Capabilities = r.meta.Capabilities
	_, m.Task = prompt.Build(in)
	r.messages, _ = handoff.Compose(m, "", said, settings.Continuation.ResumeCeilingTokens)
	r.shortened = true
	return nil
}

// tokens estimates what the first call of the model will have: what the provider
// counted for the last one, which had the tools with it, or the messages alone
// where that is more.
func (r *resumption) tokens(said []llm.Message) int64 {
	message := llm.Text(llm.User, r.request.Message)
	return handoff.Tokens(message) + max(handoff.Tokens(said...), r.before().TokenCount)
}

// prepare gives the registered thread its budget and the beginning of its
// transcript, and says what its thread.json is.
func (r *resumption) prepare(ctx context.Context, rec thread.Record) (thread.Meta, error) {
	err := r.Queue.In(r.Call.Call).Reserve(ctx, r.plan, rec.ThreadID)
	if err == nil {
		err = r.seed(rec, r.before(), thread.ViaResume, r.messages)
	}
	now := r.plan.Meta(rec)
	meta := continued(r.meta, rec, thread.Continuation{
		Via: thread.ViaResume, Position: len(r.chain) + 1, Handoffs: r.handoffs(), Messages: len(r.messages), Message: r.request.Message,
	})
	meta.Limits, meta.Warnings, meta.TraceID = now.Limits, now.Warnings, now.TraceID
	meta.DirectivePath, meta.DirectiveHash, meta.Space = now.DirectivePath, now.DirectiveHash, now.Space
	meta.Chain, meta.Route = now.Chain, now.Route
	return meta, err
}

// recordResumed adds to the transcript of the thread before that it was resumed.
// The link in the registry counts; without this line only a reader is told less.
func (c *Continuer) recordResumed(ctx context.Context, r *resumption, id thread.ID) {
	before := r.before()
	err := c.addAfterEnd(ctx, before, transcript.Resumed(id, before.Directive, r.request.Message, r.turns))
	if err != nil {
		c.Threads.Log.Warn().Err(err).Str("thread_id", string(before.ThreadID)).Msg("could not record that a thread was resumed")
	}
}

// addAfterEnd adds to the transcript of a thread that has ended.
func (c *Continuer) addAfterEnd(ctx context.Context, rec thread.Record, added transcript.Addition) error {
	if err := c.Threads.AwaitRelease(ctx, rec.ThreadID); err != nil {
		return err
	}
	hold, err := c.Threads.Life.Claim(life.Of(rec))
	if err != nil {
		return err
	}
	defer func() { _ = hold.Release() }()
	w, err := c.Threads.Finisher.OpenTranscript(rec.ThreadID)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	return w.Add(added)
}
