package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// Rebuilder makes the rows of threads again from their folders, after registry or
// ledger were lost.
//
// Facts that only the registry knew are lost: names, request keys, and cancels that
// nobody had acted on.
type Rebuilder struct {
	Records records.Records
	Store   RebuildStore
	Life    life.Life
	Host    string // of this machine
	// Remembered is what a registry that is not believed any more said of threads.
	Remembered map[thread.ID]store.Remembered
	// Stopped says that a thread which never ran is not to be run: it comes back as one
	// that was asked to stop.
	Stopped bool
}

// RebuildStore is what a [Rebuilder] writes to.
type RebuildStore interface {
	store.Keeper
	RestoreGone(ctx context.Context, g store.Gone) error
}

// Rebuilt says what could be made again.
type Rebuilt struct {
	Threads int
	Budgets int
	Skipped []Skipped
}

// Skipped is a thread folder that could not be taken back.
type Skipped struct {
	ThreadID thread.ID
	Why      error
}

// Run adds the rows that are missing. Those that are there stay as they are, so
// it can be run again, and by several processes at once.
func (b *Rebuilder) Run(ctx context.Context) (Rebuilt, error) {
	var found []records.Found
	_, err := b.Records.Walk(math.MaxInt, func(f records.Found) error {
		found = append(found, f)
		return context.Cause(ctx)
	})
	if err != nil {
		return Rebuilt{}, fmt.Errorf("go through the thread folders: %w", err)
	}
	return b.Take(ctx, found...)
}

// Take is Run for some folders.
func (b *Rebuilder) Take(ctx context.Context, folders ...records.Found) (Rebuilt, error) {
	var done Rebuilt
	var found []taken
	gone, err := b.restoreGone(ctx, &done)
	if err != nil {
		return done, err
	}
	for _, f := range folders {
		switch row, err := b.read(f); {
		case gone.has(f.ID):
			done.Skipped = append(done.Skipped, Skipped{f.ID, errDeleted})
		case err != nil:
			done.Skipped = append(done.Skipped, Skipped{f.ID, err})
		case row != nil:
			found = append(found, *row)
		}
		if err := context.Cause(ctx); err != nil {
			return done, err
		}
	}
	for i := range found {
		found[i].Budget.Gone = gone.spent[found[i].Record.ThreadID]
	}
	restored, err := b.Store.Restore(ctx, linked(found))
	if err != nil {
		return done, err
	}
	done.Threads, done.Budgets = restored.Threads, restored.Budgets
	for _, refused := range restored.Refused {
		done.Skipped = append(done.Skipped, Skipped{refused.ThreadID, refused.Err})
	}
	return done, nil
}

// Rows are those that threads have by their records, for who brings threads in.
func (b *Rebuilder) Rows(ids []thread.ID) ([]store.Restored, error) {
	found := make([]taken, 0, len(ids))
	for _, id := range ids {
		f, there, err := b.Records.Look(id)
		if err == nil && !there {
			err = thread.ErrNoMeta
		}
		if err != nil {
			return nil, fmt.Errorf("thread %s: %w", id, err)
		}
		row, err := b.read(f)
		if err != nil {
			return nil, fmt.Errorf("thread %s: %w", id, err)
		}
		found = append(found, *row)
	}
	return linked(found), nil
}

// linked are the rows of threads, with what these know only from each other.
func linked(found []taken) []store.Restored {
	link(found)
	rows := make([]store.Restored, len(found))
	for i := range found {
		rows[i] = found[i].Restored
	}
	return rows
}

var errDeleted = errors.New("the thread was deleted; what is left of it is no thread")

// goneBefore is what is known of the deleted.
type goneBefore struct {
	ids   map[thread.ID]bool
	spent map[thread.ID]thread.Micros
}

func (g goneBefore) has(id thread.ID) bool { return g.ids[id] }

// restoreGone reads what outlives the databases of the deleted, and puts it into the
// registry before there is a row of them.
func (b *Rebuilder) restoreGone(ctx context.Context, done *Rebuilt) (goneBefore, error) {
	var g store.Gone
	unread := b.Records.Gone().Read(&g)
	if errors.Is(unread, fs.ErrNotExist) {
		return goneBefore{}, nil
	}
	if unread != nil { // somebody else's, or damaged: the folders tell what there is
		done.Skipped = append(done.Skipped, Skipped{"deleted.json", unread})
		return goneBefore{}, nil //nolint:nilerr // it is told
	}
	known := goneBefore{ids: make(map[thread.ID]bool, len(g.Threads)), spent: g.Spent}
	for _, t := range g.Threads {
		known.ids[t.ID] = true
	}
	return known, b.Store.RestoreGone(ctx, g)
}

// taken is a thread as its folder tells it, and how it came to continue another.
type taken struct {
	store.Restored
	via thread.Via // empty: it continues none
}

// read makes the row of one folder. A start that was cut short before it had a
// thread.json has left nothing to take back.
func (b *Rebuilder) read(f records.Found) (*taken, error) {
	switch {
	case f.Linked:
		return nil, errors.New("the folder is a symbolic link")
	case !f.HasMeta && f.HasWords:
		return nil, thread.ErrNoMeta
	case !f.HasMeta:
		return nil, nil
	}
	left := b.Records.Of(f.ID)
	meta, err := left.Meta().Read()
	if err != nil {
		return nil, err
	}
	if meta.ThreadID != f.ID {
		return nil, fmt.Errorf("thread.json is that of %q", meta.ThreadID)
	}
	if _, err := thread.ParseID(string(meta.ThreadID)); err != nil {
		return nil, err
	}
	return b.row(meta, left.Transcript())
}

// row is what thread.json and the transcript say of a thread. The transcript
// hears of the end first, so it decides where thread.json is behind.
func (b *Rebuilder) row(meta thread.Meta, said records.Source) (*taken, error) {
	rec := thread.Record{
		ThreadID: meta.ThreadID, Kind: meta.Kind, Directive: meta.Directive, Name: meta.Directive, ParentID: meta.ParentID,
		Status: meta.Status, Process: thread.Process{Host: b.Host}, Model: meta.Model, ContinuationOf: meta.ContinuationOf, ChainRootID: meta.ChainRootID,
		Outcome: meta.Outcome, Cost: meta.Cost, CreatedAt: meta.CreatedAt, UpdatedAt: meta.UpdatedAt, LastUsed: meta.UpdatedAt,
		QueuedAt: meta.CreatedAt, AdmittedAt: meta.CreatedAt,
	}
	if known, ok := b.Remembered[rec.ThreadID]; ok {
		rec.Name, rec.RequestKey = cmp.Or(known.Name, rec.Name), known.RequestKey
	}
	if meta.ForkedFrom != nil {
		rec.Metadata = meta.ForkedFrom.Metadata()
	}
	if meta.Imported != nil {
		rec.Metadata, rec.LastUsed = meta.Imported.Metadata(), meta.Imported.At
	}
	if rec.ChainRootID == rec.ThreadID {
		rec.ChainRootID = "" // as in the row of a thread that continues no other
	}
	if !meta.Status.Terminal() {
		if err := b.complete(&rec, said); err != nil {
			return nil, err
		}
	}
	if rec.Queued() && (b.Stopped || meta.Place != b.Records.Seal().Place()) {
		rec.CancelRequestedAt = rec.CreatedAt // nothing will start it, see [Sweeper.notHere]
	}
	switch {
	case rec.Status.Terminal() && rec.Outcome == nil:
		return nil, fmt.Errorf("thread.json says %s and not how", rec.Status)
	case rec.Status.Terminal():
		rec.CompletedAt = cmp.Or(rec.UpdatedAt, rec.CreatedAt)
	}
	t := &taken{Restored: store.Restored{Record: rec, Budget: budget(rec, meta.Limits)}}
	if meta.Continuation != nil {
		t.via = meta.Continuation.Via
	}
	return t, nil
}

// complete finds out how a thread stands that had not ended by its thread.json.
// One that has decided to end has ended. One whose lock is free is dead, which
// the next look will find, unless it has never run: that is queued again.
func (b *Rebuilder) complete(rec *thread.Record, said records.Source) error {
	outcome, cost, err := transcript.LastOutcome(said)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if outcome != nil {
		rec.Status, rec.Outcome, rec.Cost = outcome.State, outcome, *cost
		return nil
	}
	if rec.Cost, err = costSoFar(said); err != nil {
		return err
	}
	held, err := b.Life.Held(life.Of(*rec))
	if err != nil {
		return err
	}
	if held {
		rec.Process = b.Life.Find(*rec)
		return nil
	}
	if rec.Status == thread.Created {
		rec.AdmittedAt = time.Time{}
	}
	return nil
}

// costSoFar adds up the answers in a transcript, and what tools have bought.
func costSoFar(said records.Source) (cost thread.Cost, err error) {
	for e, err := range transcript.Events(said) {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return thread.Cost{}, nil
		case err != nil:
			continue // events that can be read count
		case e.Type != thread.EventCognitionOut:
			cost.Spend = cost.Spend.Plus(boughtIn(e))
			continue
		}
		if out, err := transcript.Decode[transcript.CognitionOut](e); err == nil {
			cost.Turns = max(cost.Turns, out.Turn)
			cost.Spend += out.Spend
			cost.InputTokens += out.Usage.InputTokens
			cost.OutputTokens += out.Usage.OutputTokens
			cost.CacheReadTokens += out.Usage.CacheReadTokens
			cost.CacheWriteTokens += out.Usage.CacheWriteTokens
		}
	}
	return cost, nil
}

// boughtIn is what an event says that tools have bought.
func boughtIn(e thread.Event) thread.Micros {
	if e.Type != thread.EventToolCallResult && e.Type != thread.EventHookFired {
		return 0
	}
	bought, err := transcript.Decode[struct {
		Spend thread.Micros `json:"spend"`
	}](e)
	if err != nil {
		return 0
	}
	return max(0, bought.Spend)
}

// budget is the ledger row of a thread. A tool run below a thread holds nothing.
func budget(rec thread.Record, limits thread.Limits) *store.Budget {
	b := &store.Budget{
		ThreadID: rec.ThreadID, ParentID: rec.ParentID, MaxSpend: limits.Spend, Own: rec.Cost.Spend,
		Active: !rec.Status.Terminal(), CreatedAt: rec.CreatedAt, UpdatedAt: rec.UpdatedAt,
	}
	if rec.Kind == thread.KindTool && rec.ParentID != "" {
		b.MaxSpend = 0
	}
	return b
}

// link adds what threads know only from each other: how many each has started,
// which continues it, and what of its money it has handed over.
func link(found []taken) {
	// A thread that has begun goes first: it alone can have been the one that was not refused.
	slices.SortStableFunc(found, func(a, b taken) int {
		return cmp.Compare(unbegun(a.Record), unbegun(b.Record))
	})
	at := make(map[thread.ID]*thread.Record, len(found))
	for i := range found {
		at[found[i].Record.ThreadID] = &found[i].Record
	}
	given, heirs := map[thread.ID]thread.Micros{}, map[thread.ID]thread.ID{}
	for i := range found {
		rec, via := &found[i].Record, found[i].via
		if via == thread.ViaHandoff {
			given[rec.ContinuationOf] += found[i].Budget.MaxSpend
		} else if parent := at[rec.ParentID]; parent != nil {
			parent.SpawnCount++
		}
		if before := at[rec.ContinuationOf]; before != nil && continues(*rec, *before, via) {
			before.ContinuationThreadID = rec.ThreadID
			if via == thread.ViaHandoff {
				heirs[before.ThreadID] = rec.ThreadID
			}
		}
	}
	for i := range found {
		b := found[i].Budget
		b.Successor = heirs[found[i].Record.ThreadID]
		if gave := given[found[i].Record.ThreadID]; gave > 0 {
			b.MaxSpend = max(b.Own, b.MaxSpend-gave) // its thread.json says what it began with
		}
	}
}

func unbegun(rec thread.Record) int {
	if rec.Status == thread.Created {
		return 1
	}
	return 0
}

// continues reports whether a thread that was to continue another came to it. Of
// a handoff the thread before says so. A resumed thread was continued by the one
// that was not refused; where the registry was lost in the middle of two resumes,
// by the one that has begun, else the one whose folder is found first.
func continues(rec, before thread.Record, via thread.Via) bool {
	if via == thread.ViaHandoff {
		return before.Outcome != nil && before.Outcome.Handoff != nil && before.Outcome.Handoff.NewThreadID == rec.ThreadID
	}
	refused := rec.Outcome != nil && rec.Outcome.Error != nil && rec.Outcome.Error.Code == CodeNotHandedOver
	return !refused && before.Status.Terminal() && before.ContinuationThreadID == ""
}
