package fanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Advance starts the entries of all sets that are next, and settles the sets that are
// over. Any process may call it, at any time. The process in which a thread has ended
// does, as it moves the queue, and so do waits and servers.
func (m *Mapper) Advance(ctx context.Context, now *settings.Call) error {
	ids, err := m.Threads.Store.Working(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range ids {
		if err := m.advance(ctx, now, id); err != nil && !thread.WasDeleted(err, id) {
			failed = append(failed, fmt.Errorf("set %s: %w", id, err))
		}
	}
	return errors.Join(failed...)
}

// advance starts the entries of one set for as long as some can be. One process at a time
// does: another that comes meanwhile leaves it at that, so this one looks again after it
// has let go, until nothing has changed.
func (m *Mapper) advance(ctx context.Context, now *settings.Call, id thread.ID) error {
	for before := (store.Set{}); ; {
		rec, err := m.Threads.Examine(ctx, id) // entries whose process is gone are settled, and the set when it is over
		if err != nil || rec.Status.Terminal() {
			return err
		}
		if now.Providers.LacksKey(rec.Model) { // a process that has the key must not find the right taken
			return nil
		}
		set, err := m.Threads.Store.Set(ctx, id)
		if err != nil || set == before || set.Waiting == 0 || set.Working >= set.Concurrency {
			return err
		}
		lease, err := m.Threads.Life.Lease("sets")
		if errors.Is(err, life.ErrHeld) {
			return nil
		}
		if err != nil {
			return err
		}
		before, err = m.startEntries(ctx, now, rec)
		_ = lease.Release()
		if err != nil {
			return err
		}
	}
}

// startEntries starts entries of a set until none can be started, and returns the set as
// it was then.
func (m *Mapper) startEntries(ctx context.Context, now *settings.Call, rec thread.Record) (store.Set, error) {
	meta, err := m.Threads.OwnMeta(rec.ThreadID)
	if err != nil {
		return store.Set{}, err
	}
	if err := m.providerAway(ctx, now, rec); err != nil {
		set, looked := m.Threads.Store.Set(ctx, rec.ThreadID)
		return set, cmp.Or(looked, context.Cause(ctx))
	}
	s := &starting{Mapper: m, now: now, id: rec.ThreadID, meta: meta, files: &fileHashes{project: m.Project}}
	for {
		set, err := m.Threads.Store.Set(ctx, rec.ThreadID)
		if err != nil || set.Waiting == 0 || set.Working >= set.Concurrency {
			return set, err
		}
		started, err := s.next(ctx, set)
		if err != nil || !started {
			return set, err
		}
	}
}

// providerAway says why the entries of a set must wait: nobody can ask its model now. Those
// of a fleet wait in the queue, for a worker that can.
func (m *Mapper) providerAway(ctx context.Context, now *settings.Call, rec thread.Record) error {
	if m.Threads.Fleet != nil {
		return nil
	}
	return now.Providers.Ready(ctx, rec.Model)
}

// starting starts the entries of one set.
type starting struct {
	*Mapper
	now   *settings.Call
	id    thread.ID
	meta  thread.Meta
	files *fileHashes
}

// next starts the first entry that waits, or records why that cannot be. A reason that a
// later look may find otherwise leaves it waiting.
func (s *starting) next(ctx context.Context, set store.Set) (more bool, err error) {
	entry, waits, err := s.Threads.Store.NextEntry(ctx, s.id)
	if err != nil || !waits {
		return false, err
	}
	p, err := s.plan(ctx, entry)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.Is(err, store.ErrParentGone): // it is to stop
		return false, nil
	case threads.StoreIsAway(err):
		return false, err
	case threads.IsTransient(err):
		return false, nil
	case err != nil:
		return true, s.refuse(ctx, entry, err)
	}
	left, err := s.Threads.Store.Budget(ctx, s.id)
	if err != nil {
		return false, err
	}
	switch fit(p, left.Remaining(), set) {
	case moneyLater:
		return false, nil
	case moneyNoMore:
		return true, s.refuse(ctx, entry, &store.InsufficientError{Parent: s.id, Requested: p.Limits.Spend, Remaining: left.Remaining()})
	}
	return s.launch(ctx, set, entry, p)
}

// plan checks an entry again: the directive, a file or the settings may have changed
// since its set was opened.
func (s *starting) plan(ctx context.Context, e store.Entry) (*plan.Plan, error) {
	inputs, err := tool.Object(e.Inputs).Map()
	if err != nil {
		return nil, err
	}
	model, _ := s.meta.Inputs[inputModel].(string)
	return s.Planner.In(s.now).Entry(ctx, action.Caller{}, action.StartRequest{
		Directive: s.meta.Directive, Inputs: inputs, Model: model, Parent: s.id,
	})
}

// launch starts the thread of an entry, unless somebody was faster.
func (s *starting) launch(ctx context.Context, set store.Set, e store.Entry, p *plan.Plan) (more bool, err error) {
	var rights [][]string
	if s.meta.ParentID != "" {
		rights = above(&s.meta)
	}
	key, err := keyOf(p, rights, s.files)
	if err != nil {
		return false, err
	}
	n := store.NewThread{
		Kind: thread.KindDirective, Directive: p.Found.ID, Name: p.Name(s.Planner.Env), ParentID: s.id, MaxSpawns: set.Items,
		Model: p.Choice.Ref(), Entry: e.Position + 1, EntryKey: key, Now: s.Threads.Now(),
	}
	_, err = s.Queue.In(s.now).Launch(ctx, n, nil, func(ctx context.Context, rec thread.Record) (thread.Meta, error) {
		err := s.Queue.In(s.now).Reserve(ctx, p, rec.ThreadID)
		return p.Meta(rec), err
	})
	switch {
	case errors.Is(err, store.ErrEntryTaken), errors.Is(err, store.ErrParentGone):
		return false, nil
	case err != nil:
		return s.failed(ctx, e, err)
	}
	s.Threads.Crashpoints.At(CrashEntry)
	return true, nil
}

// failed goes on behind a start that has failed when the entry has a thread, which says
// why; else nothing was started, and somebody tries again.
func (s *starting) failed(ctx context.Context, e store.Entry, err error) (more bool, _ error) {
	now, found := s.Threads.Store.Entries(ctx, s.id, e.Position, 1)
	if found != nil || len(now) == 0 || now[0].Waits() {
		return false, errors.Join(err, found)
	}
	return true, nil
}

func (s *starting) refuse(ctx context.Context, e store.Entry, why error) error {
	told, _ := errors.AsType[*tool.Fault](threadsFault(why))
	return s.Threads.Store.RefuseEntry(ctx, s.id, e.Position, thread.Problem{
		Code: string(told.Code), Message: told.Message, Doing: thread.DoingStarting,
	}, s.Threads.Now())
}
