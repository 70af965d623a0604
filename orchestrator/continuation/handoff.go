package continuation

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

var _ handoff.Maker = (*Continuer)(nil)

// MakeSuccessor implements [handoff.Maker], in the process of the thread that hands
// over. Nothing of the successor is in the queue, and nothing of it runs, before that
// thread has ended and the successor's Start is called; should this process die
// before, recovery ends the successor or has it started.
func (c *Continuer) MakeSuccessor(ctx context.Context, r handoff.Request) (handoff.Successor, error) {
	h, err := c.newSuccession(ctx, r)
	if err != nil {
		return nil, err
	}
	before := h.before()
	s := &successor{Call: h.Call, secrets: r.Secrets, items: h.meta.Snapshot}
	s.rec, s.hold, err = c.Queue.Register(ctx, store.NewThread{
		Kind: before.Kind, Directive: before.Directive, Name: before.Name, Model: before.Model,
		ContinuationOf: before.ThreadID, Handoff: true, Now: c.Threads.Now(),
	})
	if err != nil {
		return nil, err
	}
	c.Threads.Crashpoints.At(CrashSuccessor)
	// From here on it exists: a stop must not leave it half made.
	ctx = context.WithoutCancel(ctx)
	if err := h.prepare(ctx, s); err != nil {
		s.GiveUp(ctx, err)
		return nil, err
	}
	return s, nil
}

// succession is what one thread hands over to the next.
type succession struct {
	*Call
	request  handoff.Request
	settings config.Continuation
	chain    []thread.Record // the thread that hands over is the last
	meta     thread.Meta     // of that thread
	children []handoff.Child // that the successor is told of
}

func (h *succession) before() thread.Record { return h.chain[len(h.chain)-1] }

func (c *Continuer) newSuccession(ctx context.Context, r handoff.Request) (*succession, error) {
	now := c.In(c.Settings.Begin())
	settings, _, err := now.Config.Coordination()
	if err != nil {
		return nil, err
	}
	h := &succession{Call: now, request: r, settings: settings.Continuation}
	if h.chain, err = lineage.Chain(r.ThreadID, c.Threads.Getter(ctx)); err != nil {
		return nil, err
	}
	if h.meta, err = c.Threads.OwnMeta(r.ThreadID); err != nil {
		return nil, err
	}
	if done := h.meta.Continuation.HandoffsNow(); done >= h.settings.MaxChain {
		return nil, &handoff.ChainError{Handoffs: done, Max: h.settings.MaxChain}
	}
	// Text that a tool of the thread has written into the file must not become what the
	// successor was told, and signed as such.
	return h, c.Threads.Finisher.VouchedFor(r.ThreadID, h.before().Cost.Turns)
}

// prepare gives a registered successor the beginning of its transcript, its
// thread.json and, last, its budget.
func (h *succession) prepare(ctx context.Context, s *successor) error {
	before := h.before()
	budget, err := h.Threads.Store.Budget(ctx, before.ThreadID)
	if err != nil {
		return err
	}
	messages, turns, err := h.messages(ctx)
	if err != nil {
		return err
	}
	if err := h.seed(s.rec, before, thread.ViaHandoff, messages, transcript.Count{}); err != nil {
		return err
	}
	h.Threads.Crashpoints.At(CrashSeeded)
	children, err := h.childrenOf(before, h.meta, h.children)
	if err != nil {
		return err
	}
	meta := continued(h.meta, s.rec, thread.Continuation{
		Via: thread.ViaHandoff, Position: len(h.chain) + 1, Handoffs: h.meta.Continuation.HandoffsNow() + 1,
		Messages: len(messages), SummaryID: h.request.SummaryID, Children: children,
	})
	meta.Limits = h.limits(max(0, budget.Remaining()+budget.Pledged))
	meta.Continuation.Whole = wholeOf(h.meta, meta.Limits, h.settings.Limits)
	h.Seal(&meta)
	if err := h.Threads.Records.By(s.rec.ThreadID, s.rec.Run).Meta().Write(meta); err != nil {
		return err
	}
	h.Threads.Crashpoints.At(CrashReady)
	if err := h.moveMoney(ctx, s.rec.Run, meta); err != nil {
		return err
	}
	h.Threads.Crashpoints.At(CrashHandedOver)
	s.handoff = thread.Handoff{NewThreadID: s.rec.ThreadID, TrailingTurns: turns}
	h.Threads.Log.Info().Str("thread_id", string(before.ThreadID)).Str("new_thread_id", string(s.rec.ThreadID)).
		Int("trailing_turns", turns).Msg("successor made")
	return nil
}

// moveMoney gives the successor what the thread before has left, behind everything
// that can fail: a thread that keeps its money can go on. Children that have settled
// meanwhile make it more than thread.json says.
func (h *succession) moveMoney(ctx context.Context, run thread.Run, meta thread.Meta) error {
	before := h.before()
	money, err := h.Threads.Store.Runner(before.ThreadID, before.Run).HandOver(ctx, meta.ThreadID, h.Threads.Now())
	if err != nil || money == meta.Limits.Spend {
		return err
	}
	meta.Limits.Spend = money
	return h.Threads.Records.By(meta.ThreadID, run).Meta().Write(meta)
}

// limits are those of the successor, which has been given so much money: what the
// thread before has left. By the settings turns, tokens and time begin anew; money
// never does, as that of a chain is one budget.
func (h *succession) limits(money thread.Micros) thread.Limits {
	l := h.meta.Limits
	l.Spend = money
	l.Spawns = max(0, l.Spawns-h.before().SpawnCount)
	if h.settings.Limits == config.LimitsFresh {
		return l
	}
	used := h.request.Used
	l.Turns = max(0, l.Turns-used.Turns)
	l.Tokens = max(0, l.Tokens-used.Tokens)
	l.DurationSeconds = max(0, l.DurationSeconds-used.Seconds)
	return l
}

// messages are what the successor begins with, and how many turns of the thread
// before are among them.
func (h *succession) messages(ctx context.Context) ([]llm.Message, int, error) {
	said, err := h.Threads.Messages(h.before().ThreadID)
	if err != nil {
		return nil, 0, err
	}
	m, err := h.manifest(ctx, h.chain, h.meta, thread.ViaHandoff, h.settings.SummaryDirective)
	if err != nil {
		return nil, 0, err
	}
	m.Task = h.request.Task
	h.children = m.Children
	messages, turns := handoff.Compose(m, h.request.Summary, said, h.request.Ceiling)
	return messages, turns, nil
}

// successor is a thread that this process has made and holds the life of.
type successor struct {
	*Call
	rec     thread.Record
	hold    life.Hold
	secrets map[string]string
	items   string // names the snapshot that it works by, as the thread before does
	handoff thread.Handoff
}

// Handoff implements [handoff.Successor].
func (s *successor) Handoff() thread.Handoff { return s.handoff }

// Start implements [handoff.Successor]. One that was asked to stop meanwhile has no
// slot, and is settled instead.
func (s *successor) Start(ctx context.Context) error {
	defer s.release()
	ctx = context.WithoutCancel(ctx) // it has its slot
	rec, err := s.Threads.Store.Get(ctx, s.rec.ThreadID)
	if err != nil {
		return err
	}
	if rec.AdmittedAt.IsZero() {
		s.release()
		_, err := s.Threads.Sweeper.Examine(ctx, rec)
		return err
	}
	if _, err := s.Queue.In(s.Call.Call).LaunchProcess(ctx, rec, s.hold, scheduler.Given{Secrets: s.secrets, Items: s.items}); err != nil {
		return s.Queue.Abandon(ctx, rec, err)
	}
	return nil
}

// GiveUp implements [handoff.Successor].
func (s *successor) GiveUp(ctx context.Context, cause error) {
	defer s.release()
	_ = s.Queue.Abandon(context.WithoutCancel(ctx), s.rec, cause) // recorded as its outcome
}

func (s *successor) release() {
	if s.hold != nil {
		_ = s.hold.Release()
		s.hold = nil
	}
}
