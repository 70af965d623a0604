package continuation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ForkRequest asks for a copy of a thread.
type ForkRequest struct {
	ThreadID thread.ID // this very thread, whichever of its chain it is
	AtTurn   *int      // the last turn of its transcript that is copied; nil: the newest that is signed
	Name     string    // of the copy; empty: the first words of the message, else the name of the thread
	Message  string    // what the copy is told; empty: it rests until it is resumed
	Person   bool      // a person at a terminal asks; see [action.Caller]
	Origin   thread.Origin
	TraceID  string // of the request this goes back to; may be empty
	// From is the thread that asks, which may fork threads below it only, and whose child
	// the copy is. Empty: whoever works with the project, or the thread that this process
	// runs in.
	From   thread.ID
	Exempt bool // a hook of From asks that needs no capability of it
}

// Forked is the answer to fork_thread.
type Forked struct {
	Success     bool         `json:"success"`
	ThreadID    thread.ID    `json:"thread_id" jsonschema:"the copy"`
	ForkedFrom  thread.ID    `json:"forked_from" jsonschema:"the thread that was copied"`
	AtTurn      int          `json:"at_turn" jsonschema:"the last turn of that thread that was copied"`
	Turns       int          `json:"turns" jsonschema:"turns of the conversation that the copy begins with"`
	Directive   string       `json:"directive"`
	Status      thread.State `json:"status"`
	Queued      bool         `json:"queued,omitempty"`
	Shortened   bool         `json:"shortened,omitempty" jsonschema:"the conversation is too long for the model: the copy has a record of the work and the last turns"`
	ContinuedBy thread.ID    `json:"continued_by,omitempty" jsonschema:"the newest thread of the chain, where that is another: it was not copied"`
	Warnings    []string     `json:"warnings,omitempty"`
	Next        string       `json:"next,omitempty" jsonschema:"what to call next"`
	// Run is how the copy was started; nil for one that rests.
	Run *view.Started `json:"-"`
}

// StartedThread tells the caller's own thread which child it has started.
func (f Forked) StartedThread() thread.ID { return f.ThreadID }

// Fork makes a thread of its own that begins with a copy of the conversation of
// another, up to a turn. The other one may be in any state, and nothing of it changes.
// The copy may do what that one may and no more; it is a root with its limits, or a
// child of the thread that asks, bounded by it.
//
// With a message it runs, and is not waited for. Without one it stands as completed
// and has cost nothing; resume_thread goes on with it.
//
// All or nothing, as a start.
func (c *Continuer) Fork(ctx context.Context, req ForkRequest) (Forked, error) {
	f, err := c.planFork(ctx, req)
	if err != nil {
		return Forked{}, threads.Fault(err)
	}
	started, err := f.start(ctx)
	if err != nil {
		return Forked{}, err
	}
	answer := Forked{
		Success: started.Success, ThreadID: started.ThreadID, ForkedFrom: f.before().ThreadID, AtTurn: f.turn, Turns: f.turns,
		Directive: f.before().Directive, Status: started.Status, Queued: started.Queued, Shortened: f.shortened,
		ContinuedBy: f.newest, Warnings: started.Warnings, Next: started.Next,
	}
	if !f.rests() {
		answer.Run = &started
	}
	return answer, nil
}

// forking is a fork that has been checked and has changed nothing yet.
type forking struct {
	*renewal
	request ForkRequest
	turn    int       // the last one that is copied
	newest  thread.ID // of the chain, where another thread than the forked one
}

// rests reports whether the copy waits for somebody to resume it.
func (f *forking) rests() bool { return f.request.Message == "" }

// planFork checks everything a caller can have got wrong.
func (c *Continuer) planFork(ctx context.Context, req ForkRequest) (*forking, error) {
	req.From = cmp.Or(req.From, c.Threads.Parent)
	f := &forking{request: req, renewal: &renewal{Call: c.In(c.Settings.Begin()), asked: asked{
		verb: "fork", done: "forked", via: thread.ViaFork, message: req.Message, person: req.Person, traceID: req.TraceID,
		from: req.From, exempt: req.Exempt,
	}}}
	planStart := func(ctx context.Context) error { return f.planStart(ctx, f.bindToParent) }
	for _, step := range []func(context.Context) error{
		f.checkName, f.findThread, f.verifyThread, f.chooseTurn, f.checkHandoffs, planStart, f.copyConversation,
	} {
		if err := step(ctx); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *forking) checkName(context.Context) (err error) {
	if f.request.Name == "" {
		return nil
	}
	if f.request.Name, err = thread.ParseName(f.request.Name); err != nil {
		return tool.Faultf(tool.CodeBadArguments, "%w", err)
	}
	return nil
}

// findThread finds the thread itself: its conversation is not that of the thread which
// continues it.
func (f *forking) findThread(ctx context.Context) error {
	chain, err := f.Threads.Chain(ctx, f.request.ThreadID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(chain, func(rec thread.Record) bool { return rec.ThreadID == f.request.ThreadID })
	if at < 0 {
		return f.Threads.NoThread(ctx, f.request.ThreadID)
	}
	if newest := chain[len(chain)-1].ThreadID; newest != f.request.ThreadID {
		f.newest = newest
	}
	f.chain = chain[:at+1]
	return f.mayTouch(ctx)
}

// ended reports whether the thread has said all that it will.
func (f *forking) ended() bool { return f.before().Status.Terminal() }

// chooseTurn decides where the copy ends. Of a thread that has not ended only what is
// signed counts.
func (f *forking) chooseTurn(context.Context) error {
	last := f.left.Transcript.Turns
	if !f.ended() {
		last = f.left.Transcript.LastTurn
	}
	f.turn = last
	if f.request.AtTurn == nil {
		return nil
	}
	f.turn = *f.request.AtTurn
	if f.turn >= 1 && f.turn <= last {
		return nil
	}
	id := f.before().ThreadID
	if last == 0 {
		return tool.Faultf(tool.CodeBadArguments, "at_turn is %d, and thread %s has no turn of its own yet", f.turn, id).
			With("thread_id", id).WithHint("leave at_turn out to copy what it began with").WithTry("%s", tryTurns(id))
	}
	return tool.Faultf(tool.CodeBadArguments, "at_turn is %d; thread %s has the turns 1 to %d", f.turn, id, last).
		With("thread_id", id).With("valid_turns", fmt.Sprintf("1 to %d", last)).WithHint("read_transcript shows them").WithTry("%s", tryTurns(id))
}

func tryTurns(id thread.ID) string {
	return fmt.Sprintf("rye-mcp threads tail %s -n 1000 shows the turns; without --at-turn all are copied", id)
}

// bindToParent makes the copy a child of the thread that asks, if one does, and holds
// it to what that may do today.
func (f *forking) bindToParent(ctx context.Context, p *plan.Plan) error {
	if f.asked.from == "" {
		return nil
	}
	rec, fit, err := f.canStart(ctx, f.asked.from)
	if err != nil {
		return err
	}
	if !fit {
		return fmt.Errorf("%w: %s, which asks, has ended or is asked to stop", store.ErrParentGone, f.asked.from)
	}
	p.Request.Parent = rec.ThreadID
	if p.Parent, err = f.Planner.ParentMeta(rec.ThreadID); err != nil {
		return err
	}
	p.Grant.Ceiling = slices.Clone(p.Grant.Ceiling)
	for _, above := range append([][]string{p.Parent.Own()}, p.Parent.Ceiling...) {
		if !slices.ContainsFunc(p.Grant.Ceiling, func(known []string) bool { return slices.Equal(known, above) }) {
			p.Grant.Ceiling = append(p.Grant.Ceiling, above)
		}
	}
	return f.mayStart(p)
}

// copyConversation reads what the copy begins with. One that runs must have room for
// it; a resume of one that rests sees to that.
func (f *forking) copyConversation(ctx context.Context) error {
	var until transcript.Until
	if f.request.AtTurn != nil {
		until.Turn = f.turn
	}
	if !f.ended() {
		if until.Bytes = f.left.Transcript.SignedBytes; until.Bytes == 0 {
			return f.nothingSaid()
		}
	}
	if err := f.readConversation(until); err != nil || f.rests() {
		return err
	}
	return f.shorten(ctx)
}

// start registers the copy, and has it run or rest.
func (f *forking) start(ctx context.Context) (view.Started, error) {
	before := f.before()
	n := store.NewThread{
		Kind: before.Kind, Directive: before.Directive, ParentID: f.plan.Request.Parent, Model: f.plan.Choice.Ref(),
		Name:     cmp.Or(f.request.Name, thread.PlainName(plan.FirstWords(f.request.Message)), before.Name),
		Metadata: f.origin().Metadata(), Now: f.Threads.Now(),
	}
	if f.plan.Parent != nil {
		n.MaxSpawns = f.plan.Parent.Limits.Spawns
	}
	if f.rests() {
		return f.rest(ctx, n)
	}
	if f.plan.Parent == nil {
		n.Origin = f.request.Origin
	}
	return f.Queue.In(f.Call.Call).Launch(ctx, n, nil, f.begin)
}

func (f *forking) origin() thread.Fork {
	return thread.Fork{ThreadID: f.before().ThreadID, Turn: f.turn}
}

// begin gives the registered copy its budget and the beginning of its transcript,
// and says what its thread.json is.
func (f *forking) begin(ctx context.Context, rec thread.Record) (thread.Meta, error) {
	err := f.reserve(ctx, rec)
	if err == nil {
		f.Threads.Crashpoints.At(CrashReserved)
		err = f.seed(rec, f.before(), thread.ViaFork, f.messages, f.counted)
	}
	if err == nil {
		f.Threads.Crashpoints.At(CrashCopied)
	}
	return f.metaOf(rec), err
}

// metaOf is the thread.json of the copy, which begins a chain of its own.
func (f *forking) metaOf(rec thread.Record) thread.Meta {
	meta, now, origin := f.renewal.metaOf(rec, 1), f.plan.Meta(rec), f.origin()
	meta.Inputs, meta.ChainRootID, meta.ForkedFrom = OwnInputs(f.meta.Inputs), now.ChainRootID, &origin
	meta.Capabilities, meta.Declared, meta.Ceiling = now.Capabilities, now.Declared, now.Ceiling
	meta.Firing = slices.Compact(slices.Sorted(slices.Values(slices.Concat(f.meta.Firing, now.Firing))))
	var into *thread.Workspace
	if f.plan.Parent != nil {
		into = f.plan.Parent.Workspace
	}
	if meta.Workspace = f.meta.Workspace.Copy(rec.ThreadID, into); meta.Workspace == nil {
		meta.Workspace = now.Workspace
	}
	return meta
}

// rest makes a copy that nobody runs: it is ended as soon as it is there, and costs
// nothing. Until then it is claimed, so that nobody takes it for a thread that is to
// run, and a crash leaves one that has died.
func (f *forking) rest(ctx context.Context, n store.NewThread) (view.Started, error) {
	rec, hold, err := f.Queue.Register(ctx, n)
	if err != nil {
		return view.Started{}, threads.Fault(err)
	}
	defer func() { _ = hold.Release() }()
	f.Threads.Crashpoints.At(scheduler.CrashRegistered)
	// From here on the copy exists: the caller going away must not leave it half made.
	ctx = context.WithoutCancel(ctx)
	if rec, err = f.endAtOnce(ctx, rec); err != nil {
		return view.Started{}, f.Queue.Abandon(ctx, rec, err)
	}
	return view.Started{
		Success: true, ThreadID: rec.ThreadID, Directive: rec.Directive, Status: rec.Status,
		End:  view.End{Warnings: slices.Clip(f.plan.Warnings)},
		Next: "resume_thread with this thread_id and a message goes on with it",
	}, nil
}

func (f *forking) endAtOnce(ctx context.Context, rec thread.Record) (thread.Record, error) {
	meta, err := f.begin(ctx, rec)
	if err != nil {
		return rec, err
	}
	by := f.Threads.Store.Runner(rec.ThreadID, rec.Run)
	claimed, err := by.Apply(ctx, store.Claimed(rec.ThreadID, thread.Process{}, f.Threads.Now()))
	if err != nil {
		return rec, err
	}
	f.Threads.Crashpoints.At(CrashRests)
	meta.Status, meta.UpdatedAt = claimed.Status, claimed.UpdatedAt
	if err := f.Threads.Records.By(rec.ThreadID, rec.Run).Meta().Write(meta); err != nil {
		return claimed, err
	}
	f.Threads.Crashpoints.At(CrashTold)
	w, err := f.Threads.Finisher.OpenTranscript(rec.ThreadID, rec.Run)
	if err != nil {
		return claimed, err
	}
	o := thread.Outcome{State: thread.Completed, Result: lastWords(f.messages)}
	ended, err := f.Threads.Finisher.Finish(ctx, by, w, o, thread.Cost{})
	closed := w.Close()
	switch {
	case ended.Status.Terminal(): // parts of the end that could not be written are completed later
		return ended, nil
	case f.decided(rec):
		f.plan.Warnings = append(f.plan.Warnings, "the copy is whole, but its end could not be recorded everywhere yet: "+
			threads.Fault(err).Message+"; that is done when the thread is looked at next")
		claimed.Status = o.State
		return claimed, nil
	}
	return claimed, errors.Join(err, closed)
}

// decided reports whether the end of a copy is in its transcript: the next who looks
// at it ends the row as well, so nobody may be told that there is no copy.
func (f *forking) decided(rec thread.Record) bool {
	w, err := f.Threads.Finisher.OpenTranscript(rec.ThreadID, rec.Run)
	if err != nil {
		return false
	}
	defer func() { _ = w.Close() }() // nothing is written
	return w.Decided() != nil
}

// lastWords is the newest text of the model in a conversation.
func lastWords(messages []llm.Message) string {
	for _, m := range slices.Backward(messages) {
		if m.Role == llm.Assistant {
			return llm.TextOf(m.Blocks)
		}
	}
	return ""
}
