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
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
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
	started, err := r.Queue.In(r.Call.Call).Launch(ctx, n, nil, r.begin)
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
	*renewal
	request ResumeRequest
	lease   life.Hold // keeps others from resuming the thread meanwhile
}

// planResume checks everything a caller can have got wrong.
func (c *Continuer) planResume(ctx context.Context, req ResumeRequest) (*resumption, error) {
	if strings.TrimSpace(req.Message) == "" {
		return &resumption{}, tool.Faultf(tool.CodeBadArguments, "message is empty; say how the thread is to continue")
	}
	req.From = cmp.Or(req.From, c.Threads.Parent)
	r := &resumption{request: req, renewal: &renewal{Call: c.In(c.Settings.Begin()), asked: asked{
		verb: "resume", done: "resumed", via: thread.ViaResume, message: req.Message, limits: req.Limits, person: req.Person, model: req.Model,
		traceID: req.TraceID, from: req.From, exempt: req.Exempt,
	}}}
	planStart := func(ctx context.Context) error { return r.planStart(ctx, r.findParent) }
	for _, step := range []func(context.Context) error{
		r.findThread, r.keepOthers, r.verifyThread, r.checkHandoffs, planStart, r.rebuild,
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
	if err := r.mayTouch(ctx); err != nil {
		return err
	}
	switch {
	case !rec.Status.Terminal():
		return tool.Faultf(tool.CodeConflict, "thread %s is %s; only one that has ended can be resumed", rec.ThreadID, rec.Status).
			With("thread_id", rec.ThreadID).WithHint("wait_threads until it has ended, or cancel_thread to end it").
			WithTry(threads.TryUntilEnded, rec.ThreadID)
	case len(lineage.Linked(r.chain)) < len(r.chain):
		// Its words are those of a thread that others continue, or still runs.
		return tool.Faultf(tool.CodeUnsupported, "thread %s never came to continue %s, so there is nothing of its own to resume",
			rec.ThreadID, rec.ContinuationOf).With("resumable", rec.ContinuationOf).WithHint("resume_thread of %s", rec.ContinuationOf).
			WithTry("rye-mcp threads resume %s MESSAGE", rec.ContinuationOf)
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
			WithHint("wait_threads of %s waits for the thread that continues it; resume that when it has ended", id).
			WithTry(threads.TryUntilEnded, id)
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

// rebuild makes the messages that the new thread begins with: the whole
// conversation, or as much of it as a handoff gives when it is too long.
func (r *resumption) rebuild(ctx context.Context) error {
	if err := r.readConversation(transcript.Until{}); err != nil {
		return err
	}
	return r.shorten(ctx)
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
		return r.mayStart(p)
	}
	if from := r.request.From; from != "" {
		return fmt.Errorf("%w: %s, which asks, has ended or is asked to stop", store.ErrParentGone, from)
	}
	return nil
}

// begin gives the registered thread its budget and the beginning of its
// transcript, and says what its thread.json is.
func (r *resumption) begin(ctx context.Context, rec thread.Record) (thread.Meta, error) {
	err := r.reserve(ctx, rec)
	if err == nil {
		err = r.seed(rec, r.before(), thread.ViaResume, r.messages, r.counted)
	}
	meta := r.metaOf(rec, len(r.chain)+1)
	if err == nil {
		meta.Continuation.Children, err = r.childrenOf(r.before(), r.meta, r.children)
	}
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
	return c.Threads.AfterEnd(ctx, rec.ThreadID, func(records.Thread) error {
		w, err := c.Threads.Finisher.OpenTranscript(rec.ThreadID, rec.Run)
		if err != nil {
			return err
		}
		defer func() { _ = w.Close() }()
		return w.Add(added)
	})
}
