package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/audit"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// The crash points of an import, in order.
const (
	CrashPut     thread.Crashpoint = "import.put"     // one more is put together, where nobody finds it
	CrashStaged  thread.Crashpoint = "import.staged"  // all are, and are verified
	CrashMoved   thread.Crashpoint = "import.moved"   // the records of one more are in their place, without a row
	CrashRows    thread.Crashpoint = "import.rows"    // all rows are there
	CrashCleared thread.Crashpoint = "import.cleared" // nothing is left beside them
)

// Crashpoints lists the crash points of an import, in order.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{CrashPut, CrashStaged, CrashMoved, CrashRows, CrashCleared}
}

// Importer takes recorded threads into a project. They can be looked at, recorded again
// and deleted; nothing goes on with them, and nobody is charged for them.
type Importer struct {
	Threads *threads.Threads
	Life    life.Life
	Host    string // of this machine
	Now     func() time.Time
}

// Imported says what was taken in.
type Imported struct {
	Threads []thread.ID `json:"threads"`
	Signer  string      `json:"signer"`
	Owner   string      `json:"owner,omitempty"`
	// Before is true when the recording had been taken in already.
	Before bool `json:"before,omitempty"`
}

// Import takes the threads of a recording in, all or none: the rows, by which threads are
// found, come last and together. Whose the recording is the caller has decided. After a
// crash it is called again.
func (i *Importer) Import(ctx context.Context, r *recording.Recording, owner string) (done Imported, err error) {
	done = Imported{Signer: r.Signer.Fingerprint(), Owner: owner}
	recorded, err := r.Threads()
	if err != nil {
		return done, threads.Fault(err)
	}
	for _, t := range recorded {
		done.Threads = append(done.Threads, t.ThreadID)
	}
	if err := fitTogether(recorded); err != nil {
		return done, threads.Fault(err)
	}
	mark := thread.Imported{Signer: done.Signer, Owner: owner, Recording: r.Hash, At: i.Now().UTC().Truncate(time.Millisecond)}
	done.Before, err = i.taken(ctx, recorded, mark)
	switch {
	case err != nil:
	case done.Before:
		err = i.clear()
	default:
		err = i.takeIn(ctx, recorded, mark)
	}
	if err != nil {
		return done, threads.Fault(err)
	}
	return done, nil
}

// fitTogether refuses what cannot be a thread of a project.
func fitTogether(recorded []*recording.Thread) error {
	for _, t := range recorded {
		if !t.Ended {
			return tool.Faultf(tool.CodeUnsupported, "thread %s had not ended when it was recorded", t.ThreadID).
				WithTry("rye-mcp replay FILE replays it as far as it had come; or record it when it has ended")
		}
		for _, other := range recorded {
			if strings.HasPrefix(string(other.ThreadID), string(t.ThreadID)+"/") {
				return tool.Faultf(tool.CodeInvalidItem, "thread %s would lie within thread %s", other.ThreadID, t.ThreadID)
			}
		}
	}
	return nil
}

// taken reports whether the recording has been taken in before, and refuses ids that other
// threads have.
func (i *Importer) taken(ctx context.Context, recorded []*recording.Thread, mark thread.Imported) (before bool, err error) {
	for _, t := range recorded {
		_, err := i.Threads.Store.Get(ctx, t.ThreadID)
		deleted, gone := errors.AsType[*thread.DeletedError](err)
		switch {
		case gone:
			return false, tool.Faultf(tool.CodeConflict, "%w; its id is not given again", deleted).
				WithTry("import it into another project: rye-mcp --project FOLDER threads import FILE")
		case errors.Is(err, thread.ErrNotFound):
			continue
		case err != nil:
			return false, err
		case i.isOf(t.ThreadID, mark):
			before = true // the rows come together
		default:
			return false, tool.Faultf(tool.CodeConflict, "this project has a thread %s already", t.ThreadID).
				WithTry("import it into another project: rye-mcp --project FOLDER threads import FILE")
		}
	}
	return before, nil
}

// isOf reports whether the records of a thread are of this recording.
func (i *Importer) isOf(id thread.ID, mark thread.Imported) bool {
	meta, err := i.Threads.OwnMeta(id)
	return err == nil && meta.Imported != nil && meta.Imported.Recording == mark.Recording
}

// takeIn puts the threads together, verifies them, moves them to their place and makes
// their rows.
func (i *Importer) takeIn(ctx context.Context, recorded []*recording.Thread, mark thread.Imported) (err error) {
	stage, err := i.Threads.Records.Stage()
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, stage.Close())
		i.Threads.Crashpoints.At(CrashCleared)
	}()
	for _, t := range recorded {
		if err := put(stage, t, recorded, mark); err != nil {
			return fmt.Errorf("put thread %s together: %w", t.ThreadID, err)
		}
		i.Threads.Crashpoints.At(CrashPut)
	}
	rows, err := i.rows(stage, recorded)
	if err != nil {
		return err
	}
	i.Threads.Crashpoints.At(CrashStaged)
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := i.move(stage, recorded, mark); err != nil {
		return err
	}
	if err := i.restore(context.WithoutCancel(ctx), rows); err != nil {
		i.takeBack(recorded, mark)
		return err
	}
	i.Threads.Crashpoints.At(CrashRows)
	return nil
}

// clear removes what an import that was cut short has left on the stage.
func (i *Importer) clear() error {
	stage, err := i.Threads.Records.Stage()
	if errors.Is(err, records.ErrStaged) { // another one is at work there
		return nil
	}
	if err != nil {
		return err
	}
	return stage.Close()
}

// rows are those that the threads will have, each held against what is on the stage.
func (i *Importer) rows(stage records.Stage, recorded []*recording.Thread) ([]store.Restored, error) {
	ids := make([]thread.ID, len(recorded))
	for n, t := range recorded {
		ids[n] = t.ThreadID
	}
	rows, err := (&recovery.Rebuilder{Records: stage, Life: i.Life, Host: i.Host}).Rows(ids)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		report, err := audit.Thread(audit.Subject{Row: row.Record, Records: stage, LedgerSpend: &row.Budget.Own})
		if err != nil {
			return nil, err
		}
		if !report.Good() {
			return nil, tool.Faultf(tool.CodeIntegrity, "thread %s of the recording contradicts itself: %s: %s",
				row.Record.ThreadID, report.Findings[0].File, report.Findings[0].Detail)
		}
	}
	return rows, nil
}

// move moves the records of all threads to their place. Records that an import of
// the same recording has left there when it was cut short make room.
func (i *Importer) move(stage records.Stage, recorded []*recording.Thread, mark thread.Imported) error {
	for n, t := range recorded {
		err := stage.Move(t.ThreadID)
		if errors.Is(err, fs.ErrExist) && i.isOf(t.ThreadID, mark) {
			if err = i.Threads.Records.Of(t.ThreadID).Whole().Remove(); err == nil {
				err = stage.Move(t.ThreadID)
			}
		}
		if errors.Is(err, fs.ErrExist) {
			err = tool.Faultf(tool.CodeConflict, "something lies where thread %s would: %w", t.ThreadID, err).
				WithTry("rye-mcp threads reconcile")
		}
		if err != nil {
			i.takeBack(recorded[:n], mark)
			return err
		}
		i.Threads.Crashpoints.At(CrashMoved)
	}
	return nil
}

// takeBack removes records that have no rows.
func (i *Importer) takeBack(recorded []*recording.Thread, mark thread.Imported) {
	for _, t := range recorded {
		if !i.isOf(t.ThreadID, mark) {
			continue
		}
		if err := i.Threads.Records.Of(t.ThreadID).Whole().Remove(); err != nil {
			i.Threads.Log.Error().Err(err).Str("thread_id", string(t.ThreadID)).Msg("take back what was imported of a thread")
		}
	}
}

// restore makes the rows.
func (i *Importer) restore(ctx context.Context, rows []store.Restored) error {
	lost, err := i.Threads.Store.Lost(ctx)
	if err != nil {
		return err
	}
	if lost {
		return tool.Faultf(tool.CodeConflict, "the registry of this project has lost threads, which come first").WithTry("rye-mcp threads list")
	}
	done, err := i.Threads.Store.Restore(ctx, rows)
	if err != nil {
		return err
	}
	for _, refused := range done.Refused {
		return fmt.Errorf("thread %s: %w", refused.ThreadID, refused.Err)
	}
	return nil
}

// put puts the records of a thread together, sealed here.
func put(stage records.Stage, t *recording.Thread, recorded []*recording.Thread, mark thread.Imported) error {
	of := stage.Of(t.ThreadID)
	if err := of.Prepare(); err != nil {
		return err
	}
	for name, content := range t.Artifacts {
		hash, _, _ := strings.Cut(name, ".")
		if _, err := of.Artifacts().Write(hash, content); err != nil {
			return err
		}
	}
	head, err := putTranscript(stage, t)
	if err != nil {
		return err
	}
	if t.Capabilities != nil {
		text, err := stage.Seal().Attach(t.Capabilities, ".md", records.CapabilitiesName(t.ThreadID), mark.At)
		if err != nil {
			return err
		}
		if err := of.Capabilities().Write(text); err != nil {
			return err
		}
	}
	return of.Meta().Write(metaOf(t, recorded, head, mark))
}

func putTranscript(stage records.Stage, t *recording.Thread) (thread.TranscriptHead, error) {
	var said bytes.Buffer
	head, err := transcript.Reseal(t.Source(), &said, stage.Seal().Key())
	if err != nil {
		return head, err
	}
	to, err := stage.Of(t.ThreadID).Transcript().Append()
	if err != nil {
		return head, err
	}
	_, err = to.Write(said.Bytes())
	return head, errors.Join(err, to.Sync(), to.Close())
}

// metaOf is the thread.json of a thread that was taken in. It is below no thread, and
// continues none, that is not with it, and has no workspace: one of that name here is
// somebody else's.
func metaOf(t *recording.Thread, recorded []*recording.Thread, head thread.TranscriptHead, mark thread.Imported) thread.Meta {
	with := func(id thread.ID) bool {
		return slices.ContainsFunc(recorded, func(other *recording.Thread) bool { return other.ThreadID == id })
	}
	m := t.Meta
	m.Transcript, m.Imported, m.Workspace = &head, &mark, nil
	if !with(m.ParentID) {
		m.ParentID = ""
	}
	if !with(m.ContinuationOf) {
		m.ContinuationOf = ""
	}
	if !with(m.ChainRootID) {
		m.ChainRootID = ""
	}
	return m
}
