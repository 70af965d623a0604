// Package relocate moves all threads of a project from one store to another: rows, records,
// the snapshots of items that they work by, and memory. It shows that nothing is lost.
package relocate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/audit"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// The crash points of a move, in order. Before the last one the old place holds; the
// parts of the new one that are there are used when the move is called again. After it the new one
// is complete, and opened to others by that.
const (
	CrashItems    thread.Crashpoint = "relocate.items"    // the snapshot of one more thread is in the new place
	CrashRecords  thread.Crashpoint = "relocate.records"  // those of one more thread are in the new place
	CrashRows     thread.Crashpoint = "relocate.rows"     // so are all rows
	CrashMemory   thread.Crashpoint = "relocate.memory"   // so is memory
	CrashCompared thread.Crashpoint = "relocate.compared" // both places have the same
	CrashComplete thread.Crashpoint = "relocate.complete" // the new place says so
	CrashRetired  thread.Crashpoint = "relocate.retired"  // the old place is put aside
)

// Crashpoints lists the crash points of a move, in order.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{CrashItems, CrashRecords, CrashRows, CrashMemory, CrashCompared, CrashComplete, CrashRetired}
}

// Rows are those of one place.
type Rows interface {
	store.Transfer
	Get(context.Context, thread.ID) (thread.Record, error)
}

// End is one of the two places of a move.
type End struct {
	Rows    Rows // nil: there is none yet
	Records records.Records
	Items   *snapshot.Keeper
	// Retire puts the place aside, so that nobody finds threads there, and says where it is.
	Retire func(context.Context) (kept string, err error)
}

// Move moves all threads of a project.
type Move struct {
	From, To End
	Memory   Memory
	Only     bool // look and compare
	// Begun: an earlier move from the old place has left what is in the new one.
	Begun bool
	// Mark notes how far the new place is.
	Mark        func(context.Context, Stage) error
	Crashpoints thread.Crashpoints
}

// Stage is how far the new place of a move is.
type Stage int

// The stages. Before the last one the place is refused to all but who moves threads there.
const (
	Begun    Stage = iota // it does not have everything yet
	Complete              // it has, and the old one is being put aside
	Ended
)

// Memory is what is noted for the threads of a project, in both places.
type Memory interface {
	// Lock keeps everybody from writing.
	Lock(context.Context) (unlock func(), err error)
	// Carry copies all of it into the new place, and can be repeated.
	Carry(context.Context) (Noted, error)
	// Empty takes away what was carried; kept is where the old place is now.
	Empty(ctx context.Context, kept string) error
}

// Noted counts what was carried of memory.
type Noted struct {
	Entries int `json:"entries"`           // of memory
	Texts   int `json:"texts"`             // that tools have stored
	Refused int `json:"refused,omitempty"` // rows that nobody vouches for, which stay
}

// Moved says what was moved.
type Moved struct {
	Content store.Content
	Records int // threads of which there were records
	Items   Items
	Memory  Noted
	Kept    string // where the old place is now
}

// Run moves the threads. It can be called again after a crash at any step.
func (m Move) Run(ctx context.Context) (done Moved, err error) {
	if done.Content, err = m.From.Rows.Content(ctx); err != nil {
		return done, err
	}
	if err := settled(done.Content); err != nil {
		return done, err
	}
	if err := m.hasRoom(ctx, done.Content); err != nil {
		return done, err
	}
	ids, err := withRecords(m.From.Records)
	if err != nil {
		return done, err
	}
	done.Records = len(ids)
	if m.Only {
		return done, nil
	}
	if err := m.Mark(ctx, Begun); err != nil {
		return done, err
	}
	items := carrier{move: m, names: map[string]string{}}
	if err := m.records(ctx, ids, &items); err != nil {
		return done, err
	}
	done.Items = items.done
	if err := m.To.Rows.Fill(ctx, m.From.Rows); err != nil {
		return done, err
	}
	m.Crashpoints.At(CrashRows)
	return done, m.handOver(ctx, &done)
}

// handOver moves memory and puts the old place aside, while nobody changes either.
func (m Move) handOver(ctx context.Context, done *Moved) error {
	unlock, err := m.Memory.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if done.Memory, err = m.Memory.Carry(ctx); err != nil {
		return err
	}
	m.Crashpoints.At(CrashMemory)
	err = m.From.Rows.Alone(ctx, func(ctx context.Context, has store.Content) (err error) {
		done.Kept, err = m.passOn(ctx, has)
		return err
	})
	if err != nil {
		return err
	}
	return m.Memory.Empty(ctx, done.Kept)
}

// settled refuses what goes on.
func settled(c store.Content) error {
	if c.Unended == 0 {
		return nil
	}
	return tool.Faultf(tool.CodeConflict, "%d threads of the project have not ended", c.Unended).
		WithTry("rye-mcp threads list --status running, then wait for them or rye-mcp threads cancel ID")
}

// hasRoom refuses a place that has other threads.
func (m Move) hasRoom(ctx context.Context, wanted store.Content) error {
	if m.To.Rows == nil || m.Begun {
		return nil
	}
	has, err := m.To.Rows.Content(ctx)
	if err != nil {
		return err
	}
	if has.Threads > 0 && !has.Same(wanted) {
		return tool.Faultf(tool.CodeConflict, "%w: %d threads are there under this name", store.ErrOccupied, has.Threads).
			WithTry("another name in store.project, or another database")
	}
	return nil
}

// passOn compares both places and puts the old one aside, while nobody changes that.
func (m Move) passOn(ctx context.Context, has store.Content) (kept string, err error) {
	if err := settled(has); err != nil {
		return "", err
	}
	moved, err := m.To.Rows.Content(ctx)
	if err != nil {
		return "", err
	}
	if !moved.Same(has) || moved.Spend != has.Spend || moved.Settled != has.Settled {
		return "", fmt.Errorf("%d threads with %d rows were moved, %d threads with %d rows are to be: something has changed meanwhile; repeat it",
			moved.Threads, moved.Rows, has.Threads, has.Rows)
	}
	m.Crashpoints.At(CrashCompared)
	if err := m.Mark(ctx, Complete); err != nil {
		return "", err
	}
	m.Crashpoints.At(CrashComplete)
	if kept, err = m.From.Retire(ctx); err != nil {
		return "", err
	}
	m.Crashpoints.At(CrashRetired)
	return kept, m.Mark(ctx, Ended)
}

// withRecords are the threads of which there is more than a row.
func withRecords(from records.Records) (ids []thread.ID, err error) {
	_, err = from.Walk(math.MaxInt, func(f records.Found) error {
		if f.HasMeta && !f.Linked {
			ids = append(ids, f.ID)
		}
		return nil
	})
	return ids, err
}

// records moves those of all threads, each whole or not at all.
func (m Move) records(ctx context.Context, ids []thread.ID, items *carrier) (err error) {
	stage, err := m.To.Records.Stage()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	for _, id := range ids {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := m.one(ctx, stage, id, items); err != nil {
			return fmt.Errorf("move the records of thread %s: %w", id, err)
		}
	}
	var gone store.Gone
	if err := m.From.Records.Gone().Read(&gone); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return m.To.Records.Gone().Write(gone)
}

// one puts the records of a thread together in the new place, sealed there. Its log, which
// nobody has signed, stays in the old one.
func (m Move) one(ctx context.Context, stage records.Stage, id thread.ID, items *carrier) error {
	from, to := m.From.Records.Of(id), stage.Of(id)
	meta, err := from.Meta().Read()
	if err != nil {
		return err
	}
	if meta.Snapshot, err = items.of(ctx, meta); err != nil {
		return err
	}
	if _, err := m.To.Records.Of(id).Meta().Read(); err == nil {
		return nil // by a move that was cut short
	}
	same := m.From.Records.Seal().Fingerprint() == stage.Seal().Fingerprint()
	if !same { // records that another key seals have to be what was signed
		if err := m.sound(ctx, id); err != nil {
			return err
		}
	}
	if err := to.Prepare(); err != nil {
		return err
	}
	if err := artifacts(from, to); err != nil {
		return err
	}
	head, err := words(from, to, stage, same)
	if err != nil {
		return err
	}
	if head != nil && meta.Transcript != nil {
		meta.Transcript = head
	}
	if err := capabilities(from, to, stage, same, meta); err != nil {
		return err
	}
	if err := to.Meta().Write(meta); err != nil {
		return err
	}
	if err := stage.Move(id); err != nil {
		return err
	}
	m.Crashpoints.At(CrashRecords)
	return nil
}

// sound refuses records that are not what was signed.
func (m Move) sound(ctx context.Context, id thread.ID) error {
	row, err := m.From.Rows.Get(ctx, id)
	if err != nil {
		return err
	}
	report, err := audit.Thread(audit.Subject{Row: row, Records: m.From.Records})
	if err != nil {
		return err
	}
	if !report.Good() {
		return tool.Faultf(tool.CodeIntegrity, "its records are not what was signed: %s: %s", report.Findings[0].File, report.Findings[0].Detail).
			WithTry("rye-mcp threads verify %s", id)
	}
	return nil
}

func artifacts(from, to records.Thread) error {
	return from.Artifacts().Each(func(name string, open func() (records.Reader, error)) error {
		hash, _, _ := strings.Cut(name, ".")
		if len(hash) != hashLength {
			return nil // no artifact
		}
		content, err := records.ReadAll(open, math.MaxInt64)
		if err == nil {
			_, err = to.Artifacts().Write(hash, content)
		}
		return err
	})
}

// hashLength is that of a SHA-256 in hex.
const hashLength = 64

// words moves a transcript, as it is where the key is the same.
func words(from, to records.Thread, stage records.Stage, same bool) (head *thread.TranscriptHead, err error) {
	if _, err := from.Transcript().Stamp(); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // it never began
	}
	w, err := to.Transcript().Append()
	if err != nil {
		return nil, err
	}
	if same {
		err = records.CopyTo(w, from.Transcript().Open)
	} else {
		var resealed thread.TranscriptHead
		resealed, err = transcript.Reseal(from.Transcript(), w, stage.Seal().Key())
		head = &resealed
	}
	if err == nil {
		err = w.Sync()
	}
	return head, errors.Join(err, w.Close())
}

// capabilities moves what a thread was shown of its tools.
func capabilities(from, to records.Thread, stage records.Stage, same bool, meta thread.Meta) error {
	text, err := records.ReadAll(from.Capabilities().Open, math.MaxInt64)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !same {
		_, rest := sign.Split(text, ".md")
		text, err = stage.Seal().Attach(rest, ".md", records.CapabilitiesName(meta.ThreadID), meta.CreatedAt)
	}
	if err != nil {
		return err
	}
	return to.Capabilities().Write(text)
}
