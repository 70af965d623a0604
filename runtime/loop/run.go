package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/runtime/workspace"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/guard"
)

// Deps is what a thread's process needs to run it. The caller holds the
// thread's life and closes what it opened.
type Deps struct {
	ID         thread.ID
	Project    string
	Process    thread.Process // this one
	Store      store.Store
	Runner     store.Runner // what this process writes by
	Finisher   *finish.Finisher
	Transcript *transcript.Writer
	// Meta is thread.json as it was read when the process began; nil: it is read now.
	Meta      func() (thread.Meta, error)
	Resolver  *resolve.Resolver
	Trust     *trust.Gate
	Executor  *executor.Executor
	Actions   *action.Actions
	Providers Models
	// TurnEnded is told that a turn is on record; it may be nil.
	TurnEnded func()
	// Warnings tell what the tools of the thread have met that their results do not say; nil:
	// nothing.
	Warnings func() []string
	// Successors makes the thread that continues this one when its context window is
	// full; nil: it ends then.
	Successors handoff.Maker
	// Workspaces are those of threads; nil: there are none.
	Workspaces workspace.Workspaces
	// Sharing knows of workspaces that are those of other threads; nil: this machine alone
	// runs threads.
	Sharing Sharing
	// StopChildren stops what the thread leaves running when it ends without
	// having completed; children of a thread that has, or is continued, go on.
	StopChildren func(ctx context.Context, id thread.ID) error
	// GiveSlot gives the slot of the thread away, while it only waits, until back
	// is called; nil keeps it.
	GiveSlot func(ctx context.Context) (back func())
	// SlotFree is told that the thread has ended, and has no slot any more, while
	// its process goes on with its last hooks; it may be nil.
	SlotFree func(ctx context.Context)
	Settings Settings
	// Recorded is what a thread is replayed from; nil: it runs.
	Recorded Recorded
	Secrets  *secret.Vault     // values of the thread's secret inputs
	Env      map[string]string // values of the {env:…} placeholders
	// Now is the wall clock, for what is stamped. It may be set while the thread
	// runs; durations are measured without it.
	Now         func() time.Time
	Log         zerolog.Logger
	Crashpoints thread.Crashpoints // told of [Crashpoints], by several goroutines at the same time
}

// Settings come from the project's configuration.
type Settings struct {
	ToolConcurrency int // tool calls of one turn that run at the same time
	PaletteTokens   int // budget for the schemas of tools offered to the model
	Retry           config.Retry
	ErrorRules      func() (config.ErrorRules, []string, error) // with warnings; read when needed
	Results         config.Results
	Nudge           string                             // config.NudgeMissing or config.NudgeFirstTurn
	Hooks           func() (hook.Set, []string, error) // of all settings, with warnings
	OnLimit         config.OnLimit                     // where the directive does not say
	Continuation    config.Continuation
	Notes           config.Notes
}

// run is one thread while it runs. Only the goroutine of Run changes it; the
// tool calls of a turn, which run at the same time, read it.
type run struct {
	Deps
	meta         thread.Meta
	clock        stopwatch
	cost         thread.Cost
	purse        purse
	model        model
	cacheKey     string // see [cacheKeyOf]
	system       string
	conversation conversation
	toolset      toolset
	task         task
	shown        guard.Given // results, so that none is shown twice
	gallery      gallery     // of images
	nudges       int
	acted        bool   // the conversation that it continues has an answer in it
	partial      string // text of the answers that the output limit cut off
	cuts         cuts
	recovery     recovery
	hooks        hooks
	begins       llm.Model // the model it begins with, as a successor does
	succession   succession
	hands        hands // that run tools
	place        workplace
	inbox        inbox
	children     children

	queuedAt, admittedAt time.Time // as its row said when it was claimed; zero: it was in no queue

	prepared bool // the model can be asked
	last     bool // the thread has its last turn, which only money and time bound

	patience  time.Duration // with a tool that was told to stop
	lookEvery time.Duration // for the transcript during a call of the model, and for a cancel on record
}

// Run runs the thread of d and applies its outcome. The error is about
// applying it; how the thread itself ended is in the returned row.
func Run(ctx context.Context, d Deps) (thread.Record, error) { return newRun(d).toEnd(ctx) }

func newRun(d Deps) *run {
	r := &run{Deps: d, clock: startedWatch(), patience: patience, lookEvery: lookEvery, recovery: newRecovery()}
	r.purse.run = r
	if d.Recorded != nil {
		r.recovery.pause = func(context.Context, time.Duration) error { return nil }
	}
	return r
}

func (r *run) toEnd(ctx context.Context) (thread.Record, error) {
	defer r.hands.close()
	defer func() { r.place.close(ctx, r) }()
	outcome := r.toOutcome(ctx)
	reader{r}.end(ctx, &outcome)
	r.cost.Spend = r.purse.close()
	r.place.sum(ctx, r, &outcome)
	outcome = r.withoutSecrets(outcome)
	r.Crashpoints.At(CrashDecided)
	// Nothing may stop what follows: it is what waiters and parents are told.
	ctx = context.WithoutCancel(ctx)
	if lost := (tenure{r}).lost(ctx); lost != nil {
		return tenure{r}.leaveToOthers(ctx, lost, outcome)
	}
	if outcome.State != thread.Completed && outcome.State != thread.Continued {
		if err := r.StopChildren(ctx, r.ID); err != nil {
			r.Log.Error().Err(err).Msg("stop the children")
		}
		r.Crashpoints.At(CrashChildren)
	}
	rec, err := r.Finisher.Finish(ctx, r.Runner, r.Transcript, outcome, r.cost)
	r.passOn(ctx, rec, err)
	if errors.Is(err, finish.ErrOutcomeLost) { // somebody else has settled it
		r.Log.Warn().Err(err).Msg("thread ended without this process")
		return rec, nil
	}
	if err != nil {
		return rec, fmt.Errorf("finish thread %s: %w", r.ID, err)
	}
	r.Log.Info().Str("status", string(rec.Status)).Int("turns", rec.Cost.Turns).
		Str("spend", rec.Cost.Spend.String()).Msg("thread ended")
	if rec.Status != thread.Continued { // whose last hooks ran before it handed over
		r.afterComplete(ctx, rec.Status)
	}
	return rec, nil
}

// toOutcome runs the thread and turns whatever happens, a panic included, into
// its outcome.
func (r *run) toOutcome(ctx context.Context) (outcome thread.Outcome) {
	defer func() {
		if v := recover(); v != nil {
			r.Log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Msg("the loop panicked")
			outcome = decide(ended{err: fmt.Errorf("bug; the loop panicked: %v", v), doing: r.doing()})
		}
	}()
	if err := r.claim(ctx); err != nil {
		return r.outcome(ctx, ended{err: err, doing: "claiming its row"})
	}
	if end := r.Transcript.Decided(); end != nil { // its row is of an older time
		r.cost = end.Cost
		r.purse.begin(end.Cost.Spend)
		return end.Outcome
	}
	ctx, done := r.heedRecord(ctx)
	defer done()
	if err := r.place.enter(ctx, r); err != nil {
		return r.outcome(ctx, ended{err: err, doing: "making its workspace"})
	}
	if r.meta.Kind == thread.KindTool {
		return r.outcome(ctx, r.timed(ctx, r.timeLeft(), r.runTool).met(r.Warnings))
	}
	defer r.closeModel()
	defer r.follow(ctx)()
	e := r.timed(ctx, r.timeLeft(), r.work)
	for again := true; again; {
		e, again = r.afterEnd(ctx, e)
	}
	e.warnings = append(e.warnings, r.cuts.warning(e.err)...)
	e.warnings = append(e.warnings, r.hookWarnings()...)
	return r.outcome(ctx, e.met(r.Warnings))
}

// met is the end with what the tools of the thread have met.
func (e ended) met(warnings func() []string) ended {
	if warnings != nil {
		e.warnings = append(e.warnings, warnings()...)
	}
	return e
}

// follow keeps the thread's rendering up with what is written of it. A thread does not
// fail for want of one.
func (r *run) follow(ctx context.Context) (stop func()) {
	rec, err := r.Store.Get(ctx, r.ID)
	if err == nil {
		var end func() error
		if end, err = r.Finisher.Follow(rec, r.Transcript); err == nil {
			return func() {
				if err := end(); err != nil {
					r.Log.Warn().Err(err).Msg("the rendering was not kept up with the transcript")
				}
			}
		}
	}
	r.Log.Warn().Err(err).Msg("the rendering is written at the end only")
	return func() {}
}

// work prepares the thread and lets it take its turns.
func (r *run) work(ctx context.Context) ended {
	if err := r.prepare(ctx); err != nil {
		return ended{err: err, doing: "preparing its first turn"}
	}
	r.prepared = true
	return r.turns(ctx)
}

// claim makes this process the runner of the thread: created → running, which
// a cancel on record prevents.
func (r *run) claim(ctx context.Context) error {
	read := r.Meta
	if read == nil {
		read = r.records().Meta().Read
	}
	meta, err := read()
	if err != nil {
		return err
	}
	if meta.ThreadID != r.ID {
		return fmt.Errorf("thread.json in the folder of %s is that of %q", r.ID, meta.ThreadID)
	}
	r.meta = meta
	rec, err := r.Runner.Apply(ctx, store.Claimed(r.ID, r.Process, r.Now()))
	if errors.Is(err, thread.ErrSettled) {
		now, getErr := r.Store.Get(ctx, r.ID)
		if getErr == nil && !now.CancelRequestedAt.IsZero() {
			return fmt.Errorf("%w before it started", now.CancelCause())
		}
		return errors.Join(err, getErr)
	}
	if err != nil {
		return err
	}
	r.Crashpoints.At(CrashClaimed)
	r.queuedAt, r.admittedAt = rec.QueuedAt, rec.AdmittedAt
	r.meta.Status, r.meta.UpdatedAt = rec.Status, rec.UpdatedAt
	if err := r.records().Meta().Write(r.meta); err != nil {
		return err
	}
	r.Crashpoints.At(CrashMeta)
	r.Log.Info().Str("item", r.meta.Directive).Str("model", r.meta.Model).Interface("limits", r.meta.Limits).
		Msg("thread started")
	return nil
}

// turns is the loop.
func (r *run) turns(ctx context.Context) ended {
	budget, err := r.check(ctx)
	for {
		if err != nil {
			return ended{err: err, doing: r.doing()}
		}
		done := r.afterStep(ctx, r.turn(ctx, budget))
		if done == nil {
			if budget, err = r.betweenTurns(ctx); err != nil {
				continue
			}
			if done = r.afterTurn(ctx); done == nil {
				continue
			}
		}
		if done.err == nil && done.handoff == nil {
			if err := r.checkpoint(r.Transcript.Checkpoint); err != nil {
				return ended{err: err, doing: r.doing()}
			}
		}
		return *done
	}
}

// turn asks the model once and does what it answers. It returns how the thread
// ended, or nil when there is another turn.
func (r *run) turn(ctx context.Context, budget store.Budget) *ended {
	if err := (reader{r}).read(ctx); err != nil {
		return &ended{err: err, doing: "reading messages to it"}
	}
	answered, err := r.ask(ctx, budget)
	if full, ok := errors.AsType[*fullError](err); ok {
		return r.whenFull(ctx, full)
	}
	if err != nil {
		return &ended{err: err, doing: fmt.Sprintf("asking the model in turn %d", r.cost.Turns+1)}
	}
	// Nothing is done by an answer before the turn that led to it is on disk.
	if err := r.Transcript.Synced(); err != nil {
		return &ended{err: fmt.Errorf("checkpoint: %w", err), doing: r.doing()}
	}
	if err := r.take(answered); err != nil {
		return &ended{err: err, doing: r.doing()}
	}
	r.cuts.note(answered, r.model.choice)
	done, err := r.act(ctx, answered.answer)
	if err != nil {
		return &ended{err: err, doing: r.doing()}
	}
	return done
}

// betweenTurns puts the turn on record and checks whether there may be another. The
// disk is awaited while the model is asked, see [run.turn].
func (r *run) betweenTurns(ctx context.Context) (store.Budget, error) {
	if err := r.checkpoint(r.Transcript.BeginCheckpoint); err != nil {
		return store.Budget{}, err
	}
	if r.TurnEnded != nil {
		r.TurnEnded()
	}
	return r.check(ctx)
}

// checkpoint ends the turn in the transcript, by one of the writer's ways to do that.
func (r *run) checkpoint(end func(turn int) error) error {
	if err := end(r.cost.Turns); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	r.Crashpoints.At(CrashCheckpoint)
	r.Log.Debug().Int("turn", r.cost.Turns).Str("spend", r.cost.Spend.String()).Msg("turn ended")
	return nil
}

// doing says where in its work the thread is, for the error its parent sees.
func (r *run) doing() string {
	if r.cost.Turns == 0 {
		return "its first turn"
	}
	return fmt.Sprintf("turn %d", r.cost.Turns)
}

func (r *run) records() records.Thread { return r.Finisher.Records.By(r.Runner.Of()) }

// seal vouches for what the thread leaves.
func (r *run) seal() *place.Seal { return r.Finisher.Records.Seal() }
