// Package finish ends a thread. There is one sequence by which an outcome
// reaches transcript, ledger, registry and thread.json, used by the thread
// itself and by whoever finds its process gone, so that both leave the same
// state. Each step can be repeated: a crash between any two is mended by
// running the sequence again, and the outcome that was decided first is the one
// that counts, because it is in the transcript before anything else changes.
//
// The caller must hold the thread's life lock.
package finish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/place"
)

// The crash points of the sequence, in order.
const (
	CrashTranscript thread.Crashpoint = "finish.transcript" // outcome and final checkpoint are in the transcript
	CrashLedger     thread.Crashpoint = "finish.ledger"     // spend is reported, cascaded and released
	CrashMeta       thread.Crashpoint = "finish.meta"       // thread.json says so
	CrashKnowledge  thread.Crashpoint = "finish.knowledge"  // the rendering is whole and signed
	CrashRegistry   thread.Crashpoint = "finish.registry"   // the row is terminal; waiters wake, and find all of it
)

// Crashpoints lists the crash points of the sequence, in order.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{CrashTranscript, CrashLedger, CrashMeta, CrashKnowledge, CrashRegistry}
}

// The crash points of writing a knowledge entry, in order. The sequence comes to them before
// [CrashKnowledge], and so does each entry that is written by itself.
const (
	CrashComposed thread.Crashpoint = "finish.composed" // the text is there, and nothing of it on disk
	CrashDrafted  thread.Crashpoint = "finish.drafted"  // the draft is on disk
)

// EntryCrashpoints lists the crash points of writing a knowledge entry, in order.
func EntryCrashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{CrashComposed, CrashDrafted}
}

// Finisher applies outcomes.
type Finisher struct {
	Store store.Store
	// Records are what the threads of the project leave beside their rows.
	Records records.Records
	// KnowledgeDir is the project's knowledge folder, which gets a rendering of
	// every thread; empty: none is made.
	KnowledgeDir string
	Now          func() time.Time
	Crashpoints  thread.Crashpoints
	// Mask hides secrets in what is written to transcripts, see [transcript.Options];
	// nil hides nothing.
	Mask transcript.Masker
}

// OpenTranscript opens the transcript of a thread for appending, by a run of it.
func (f *Finisher) OpenTranscript(id thread.ID, run thread.Run) (*transcript.Writer, error) {
	seal := f.Records.Seal()
	if seal == nil {
		return nil, fmt.Errorf("open the transcript of %s: %w", id, place.ErrNoState)
	}
	w, err := transcript.Open(f.Records.By(id, run).Transcript(), id, transcript.Options{Now: f.Now, Mask: f.Mask, Signer: seal.Key()})
	if err != nil {
		return nil, fmt.Errorf("open the transcript of %s: %w", id, err)
	}
	return w, nil
}

// VouchedFor refuses the transcript of a thread that has not ended when a part of
// it is not what was signed, or is not signed, or when fewer turns are in it than
// the thread has had. Nobody may write to it meanwhile.
func (f *Finisher) VouchedFor(id thread.ID, turns int) error {
	said := f.Records.Of(id).Transcript()
	report, err := transcript.Verify(said, f.Records.Seal(), nil)
	switch {
	case err != nil:
		return err
	case report.ThreadID != id:
		return fmt.Errorf("%s is that of thread %q", said.Where(), report.ThreadID)
	case report.SignedBytes != report.Bytes:
		return fmt.Errorf("%s has %d bytes that nobody signed", said.Where(), report.Bytes-report.SignedBytes)
	case report.Turns < turns:
		return fmt.Errorf("%s was cut off: %d of %d turns are left", said.Where(), report.Turns, turns)
	}
	return nil
}

// Finish applies an outcome to a thread whose life the caller holds, by its run, and
// returns the row after it. An outcome that is in the transcript already goes
// before o, and a thread that is already terminal keeps its outcome; what a
// crash left undone after that is done now.
func (f *Finisher) Finish(
	ctx context.Context, by store.Runner, w *transcript.Writer, o thread.Outcome, cost thread.Cost,
) (thread.Record, error) {
	id, run := by.Of()
	rec, err := f.Store.Get(ctx, id)
	if err != nil {
		return rec, err
	}
	if rec.Run != "" && rec.Run != run {
		return rec, fmt.Errorf("finish %s: %w", id, store.ErrFenced)
	}
	if decided := w.Decided(); decided != nil {
		o, cost = decided.Outcome, decided.Cost
	} else if NeverRan(rec) {
		o, cost = *rec.Outcome, rec.Cost
	} else if rec.Status.Terminal() {
		return rec, fmt.Errorf("finish %s: %w", id, ErrOutcomeLost)
	}
	o = f.withRetry(rec, w, o, cost)
	head, err := w.Finish(o, cost)
	if err != nil {
		return thread.Record{}, fmt.Errorf("finish transcript of %s: %w", id, err)
	}
	f.Crashpoints.At(CrashTranscript)
	if err := f.countRead(ctx, by, rec); err != nil {
		return thread.Record{}, fmt.Errorf("messages to %s: %w", id, err)
	}

	if err := f.settleBudget(ctx, by, cost); err != nil {
		return thread.Record{}, fmt.Errorf("settle budget of %s: %w", id, err)
	}
	f.Crashpoints.At(CrashLedger)

	ended := f.ended(rec, o, cost)
	unwritten := f.writeFiles(ended, run, head) // the row is the truth, and must be told all the same

	rec, err = f.applyOutcome(ctx, by, o, cost, ended.UpdatedAt)
	if err != nil {
		return thread.Record{}, errors.Join(fmt.Errorf("record outcome of %s: %w", id, err), unwritten)
	}
	f.Crashpoints.At(CrashRegistry)
	return rec, unwritten
}

// withRetry adds to an outcome that is not decided yet when the thread is tried again, by
// its thread.json. Where that cannot be read nothing vouches for another attempt.
func (f *Finisher) withRetry(rec thread.Record, w *transcript.Writer, o thread.Outcome, cost thread.Cost) thread.Outcome {
	if o.State != thread.Error || w.Decided() != nil || rec.Status.Terminal() || !rec.CancelRequestedAt.IsZero() {
		return o
	}
	meta, err := f.Records.Of(rec.ThreadID).Meta().Read()
	if err == nil && meta.ThreadID == rec.ThreadID {
		o.Retry = meta.RetryOf(o, cost, f.Now())
	}
	return o
}

// countRead has the registry say of messages that they were read which stand in the
// transcript: a process that was killed in between has not. The others go to the thread
// that continues this one.
func (f *Finisher) countRead(ctx context.Context, by store.Runner, rec thread.Record) error {
	if rec.Unread == 0 {
		return nil
	}
	read, err := transcript.MessageIDs(f.Records.Of(rec.ThreadID).Transcript())
	if err != nil || len(read) == 0 {
		return err
	}
	id, run := by.Of()
	return f.Store.Deliver(ctx, id, run, read, f.Now())
}

// ended is the row as it will be.
func (f *Finisher) ended(rec thread.Record, o thread.Outcome, cost thread.Cost) thread.Record {
	if !rec.Status.Terminal() {
		rec.Status, rec.Outcome, rec.Cost = o.State, &o, cost
		rec.UpdatedAt = f.Now().UTC().Truncate(time.Millisecond) // as the registry keeps it
	}
	return rec
}

// writeFiles writes what waiters find beside the row.
func (f *Finisher) writeFiles(rec thread.Record, run thread.Run, head thread.TranscriptHead) error {
	if err := f.writeMeta(rec, run, head); err != nil {
		return fmt.Errorf("write thread.json of %s: %w", rec.ThreadID, err)
	}
	f.Crashpoints.At(CrashMeta)
	if err := f.writeRendering(rec); err != nil {
		return fmt.Errorf("write the rendering of %s: %w", rec.ThreadID, err)
	}
	f.Crashpoints.At(CrashKnowledge)
	return nil
}

// ErrOutcomeLost says that a thread has ended by its row and that its transcript
// does not know of it, which no crash leaves behind: the transcript was cut short
// or put back. It is not signed again as if it were whole.
var ErrOutcomeLost = errors.New("the transcript lacks the end that the registry has")

// FinishRow ends a thread that has never run in ledger and registry alone, where its
// files cannot be written. Finish brings them up to that later.
func (f *Finisher) FinishRow(ctx context.Context, by store.Runner, o thread.Outcome) (thread.Record, error) {
	id, _ := by.Of()
	if err := f.settleBudget(ctx, by, thread.Cost{}); err != nil {
		return thread.Record{}, fmt.Errorf("settle budget of %s: %w", id, err)
	}
	return f.applyOutcome(ctx, by, o, thread.Cost{}, f.Now())
}

// NeverRan reports whether a thread ended before it had a process: its transcript
// cannot have lost anything, and its files may not have been written.
func NeverRan(rec thread.Record) bool {
	p := rec.Outcome
	return rec.Status.Terminal() && rec.PID == 0 && rec.Cost == (thread.Cost{}) && p != nil && p.Error != nil && p.Error.Doing == thread.DoingStarting
}

func (f *Finisher) settleBudget(ctx context.Context, by store.Runner, cost thread.Cost) error {
	now := f.Now()
	if err := by.Report(ctx, cost.Spend, now); err != nil && !errors.Is(err, store.ErrNoBudget) {
		return err
	}
	return by.Settle(ctx, now)
}

// applyOutcome changes the row, or finds that it was changed before.
func (f *Finisher) applyOutcome(
	ctx context.Context, by store.Runner, o thread.Outcome, cost thread.Cost, at time.Time,
) (thread.Record, error) {
	id, _ := by.Of()
	change, err := store.Finished(id, o, &cost, at)
	if err != nil {
		return thread.Record{}, err
	}
	rec, err := by.Apply(ctx, change)
	if !errors.Is(err, thread.ErrSettled) || errors.Is(err, store.ErrFenced) {
		return rec, err
	}
	rec, err = f.Store.Get(ctx, id)
	if err == nil && !rec.Status.Terminal() {
		return rec, fmt.Errorf("%w: row is %s and cannot become %s", thread.ErrSettled, rec.Status, o.State)
	}
	return rec, err
}

// writeMeta makes thread.json agree with the row. A thread that died before it
// had one gets none.
func (f *Finisher) writeMeta(rec thread.Record, run thread.Run, head thread.TranscriptHead) error {
	described := f.Records.By(rec.ThreadID, run).Meta()
	meta, err := described.Read()
	if errors.Is(err, thread.ErrNoMeta) {
		return nil
	}
	if err != nil {
		return err
	}
	if meta.ThreadID != rec.ThreadID { // correctly signed, and not to be signed as this one's
		return fmt.Errorf("thread.json of %s is that of %s", rec.ThreadID, meta.ThreadID)
	}
	meta.Status, meta.Cost, meta.Outcome = rec.Status, rec.Cost, rec.Outcome
	meta.UpdatedAt = rec.UpdatedAt
	meta.Transcript = &head
	return described.Write(meta)
}
