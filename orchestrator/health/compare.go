package health

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// outline keeps what is compared of a row.
func (r *reconciling) outline(rec thread.Record) row {
	o := row{Record: rec, gone: knownGone(rec.Metadata), neverRan: finish.NeverRan(rec)}
	if rec.Outcome != nil {
		if r.reading {
			o.end = digest(rec.Outcome)
		}
		o.refused = rec.Outcome.Error != nil && rec.Outcome.Error.Code == recovery.CodeNotHandedOver
		if rec.Outcome.Handoff != nil {
			o.handoff = rec.Outcome.Handoff.NewThreadID
		}
	}
	o.Outcome, o.Metadata, o.Name = nil, nil, ""
	return o
}

// knownGone reports whether metadata notes that the records of the thread are gone.
func knownGone(metadata json.RawMessage) bool {
	if !bytes.Contains(metadata, []byte(thread.MetadataRecordsGone)) {
		return false
	}
	var noted map[string]json.RawMessage
	return json.Unmarshal(metadata, &noted) == nil && noted[thread.MetadataRecordsGone] != nil
}

// digest is the same for two outcomes that say the same: in a signed file the members
// of free JSON have another order.
func digest(o *thread.Outcome) [sha256.Size]byte {
	text, err := json.Marshal(o)
	var plain any
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err == nil {
		text, err = json.Marshal(plain)
	}
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(text)
}

// walkFolders goes through the folders and looks for their rows.
func (r *reconciling) walkFolders(ctx context.Context) (err error) {
	strays := r.strays(r.strayFolder)
	r.walked, err = r.Checker.Threads.Records.Walk(mostFolders(r.all), func(f records.Found) error {
		r.Folders++
		r.seen[f.ID] = f
		if f.Linked {
			r.linked(f)
			return context.Cause(ctx)
		}
		if _, known := r.rows[f.ID]; known {
			return context.Cause(ctx)
		}
		return strays.add(ctx, f)
	})
	if err != nil {
		return err
	}
	return strays.flush(ctx)
}

func (r *reconciling) linked(f records.Found) {
	r.find(findFolderLinked, f.ID, "%s is a symbolic link, which is not followed", f.Where)
}

// folderOf is the folder of a thread whose row was read.
func (r *reconciling) folderOf(id thread.ID) (f records.Found, found bool, err error) {
	if f, found = r.seen[id]; found || r.walked {
		return f, found, nil
	}
	f, found, err = r.Checker.Threads.Records.Look(id)
	if err != nil || !found {
		return f, false, err
	}
	if _, told := r.seen[f.ID]; !told {
		r.Folders++
		r.seen[f.ID] = f
		if f.Linked {
			r.linked(f)
		}
	}
	return f, f.ID == id, nil
}

// strayFolder tells of a folder that no row knows.
func (r *reconciling) strayFolder(ctx context.Context, f records.Found) {
	held, err := r.Checker.Threads.Life.Held(life.Key{Thread: f.ID})
	switch {
	case err != nil:
		r.find(findLock, f.ID, "its lock cannot be looked at: %v", err)
	case !r.reading && (held || f.HasMeta || f.HasWords):
		r.find(findRowMissing, f.ID, "the folder of a thread without a row")
	case f.HasMeta:
		r.strayThread(ctx, f, held)
	case held:
		r.find(findRowMissing, f.ID, "somebody holds the life lock of a thread without a row")
	case f.HasWords:
		r.find(findMetaMissing, f.ID, "the folder of a thread without a row has a transcript and no thread.json")
	default:
		r.findMendable(findLock, f.ID, func(ctx context.Context) (bool, error) { return r.removeLeftover(ctx, f.ID) },
			"what is left of a start that was cut short before the thread was registered")
	}
}

// strayThread tells of a folder with a thread.json that no row knows. It is believed
// when it is signed for this thread and this place, and its transcript too.
func (r *reconciling) strayThread(ctx context.Context, f records.Found, held bool) {
	if _, err := r.Checker.Threads.Store.Get(ctx, f.ID); isDeleted(err) {
		r.find(findDeleted, f.ID, "%v, and there is a folder of it", err)
		return
	}
	meta, err := r.Checker.Threads.Records.Of(f.ID).Meta().Read()
	switch {
	case err != nil:
		r.findUnreadable(f.ID, "a folder without a row: ", err)
		return
	case meta.ThreadID != f.ID:
		r.find(findMetaCopied, f.ID, "a folder without a row; its thread.json is that of %s", meta.ThreadID)
		return
	}
	if _, err := r.signedEnd(meta, held); err != nil {
		r.find(findTranscript, f.ID, "a folder without a row: %v", err)
		return
	}
	r.findLost(findRowMissing, f, "the folder of a thread without a row; by its thread.json it is %s", meta.Status)
}

// isDeleted reports whether an error says that a thread was deleted.
func isDeleted(err error) bool {
	_, is := errors.AsType[*thread.DeletedError](err)
	return is
}

// findUnreadable tells of a thread.json that is not believed.
func (r *reconciling) findUnreadable(id thread.ID, where string, err error) {
	signer := r.Checker.Threads.Records.Of(id).Meta().Signer()
	if errors.Is(err, sign.ErrBadSignature) && signer != "" {
		if meta, peeked := r.Checker.Threads.Records.Of(id).Meta().Peek(); !r.Checker.Threads.Records.Seal().Accepts(signer) ||
			peeked == nil && meta.Place != r.Checker.Threads.Records.Seal().Place() && meta.Place != "" {
			r.find(findMetaForeign, id, "%s%v", where, err)
			return
		}
	}
	r.find(findMetaUnreadable, id, "%s%v", where, err)
}

// errNoEnd says that a transcript does not say how its thread has ended.
var errNoEnd = errors.New("its transcript does not say how it ended")

// signedEnd is how a thread has ended by its transcript, which must be what was signed,
// and by its thread.json when that says that it has ended; nil when neither does.
func (r *reconciling) signedEnd(meta thread.Meta, runs bool) (*thread.Record, error) {
	said := r.Checker.Threads.Records.Of(meta.ThreadID).Transcript()
	report, err := transcript.Verify(said, r.Checker.Threads.Records.Seal(), meta.Transcript)
	switch {
	case errors.Is(err, fs.ErrNotExist) && meta.Transcript == nil:
		return nil, nil
	case err != nil:
		return nil, err
	case report.ThreadID != meta.ThreadID && report.Bytes > 0:
		return nil, fmt.Errorf("its transcript is that of thread %.80q", report.ThreadID)
	case runs:
		return nil, nil
	}
	outcome, cost, err := transcript.LastOutcome(said)
	switch {
	case err != nil:
		return nil, err
	case outcome == nil && !meta.Status.Terminal():
		return nil, nil
	case outcome == nil:
		return nil, errNoEnd
	case meta.Status.Terminal() && (meta.Outcome == nil || digest(meta.Outcome) != digest(outcome) || meta.Cost != *cost || meta.Status != outcome.State):
		return nil, errors.New("its transcript and its thread.json say that it ended in another way each")
	}
	return &thread.Record{
		ThreadID: meta.ThreadID, Kind: meta.Kind, Directive: meta.Directive, Status: outcome.State, Outcome: outcome, Cost: *cost, UpdatedAt: meta.UpdatedAt,
	}, nil
}

// compareRows goes through the rows and looks for their folders and relatives.
func (r *reconciling) compareRows(ctx context.Context) error {
	done := 0
	for id, rec := range r.rows {
		if err := r.compareRow(ctx, id, rec); err != nil {
			return err
		}
		done++
		tell(r.progress, done, len(r.rows))
	}
	return context.Cause(ctx)
}

func (r *reconciling) compareRow(ctx context.Context, id thread.ID, rec row) error {
	f, found, err := r.folderOf(id)
	if err != nil {
		return err
	}
	var meta *thread.Meta
	switch {
	case !found && rec.Status == thread.Created && r.recent(rec.CreatedAt):
	case !found && !rec.gone:
		r.folderMissing(rec)
	case !found, f.Linked:
	case rec.gone:
		r.findMendable(findFolderBack, id, func(ctx context.Context) (bool, error) {
			return r.Checker.Threads.Store.Mend().MarkGone(ctx, id, time.Time{})
		}, "the row says that the records of the thread are gone, and there is a folder")
	}
	if found && !f.Linked && (r.reading || !f.HasMeta) {
		if meta, err = r.compareFiles(ctx, f, rec); err != nil {
			return err
		}
	}
	return r.compareRelatives(ctx, rec, meta)
}

func (r *reconciling) folderMissing(rec row) {
	const detail = "the thread is %s and its folder is gone"
	switch id := rec.ThreadID; {
	case !rec.Status.Terminal():
		r.find(findFolderMissing, id, detail, rec.Status)
	case rec.neverRan:
		r.findMendable(findFolderMissing, id, func(ctx context.Context) (bool, error) { return r.writeEnd(ctx, id) }, detail, rec.Status)
	default:
		r.findMendable(findFolderMissing, id, func(ctx context.Context) (bool, error) {
			if _, found, err := r.Checker.Threads.Records.Look(id); found || err != nil {
				return false, err
			}
			return r.Checker.Threads.Store.Mend().MarkGone(ctx, id, r.Checker.Threads.Now())
		}, detail, rec.Status)
	}
}

// compareFiles compares what is in the folder of a thread with its row. It returns
// thread.json, if that can be believed.
func (r *reconciling) compareFiles(ctx context.Context, f records.Found, rec row) (*thread.Meta, error) {
	if !f.HasMeta {
		r.withoutMeta(rec)
		return nil, nil
	}
	left := r.Checker.Threads.Records.Of(f.ID)
	meta, err := left.Meta().Read()
	switch {
	case errors.Is(err, thread.ErrNoMeta): // removed since
		r.withoutMeta(rec)
		return nil, nil
	case err != nil:
		r.findUnreadable(f.ID, "", err)
		return nil, context.Cause(ctx)
	case meta.ThreadID != rec.ThreadID:
		r.find(findMetaCopied, f.ID, "thread.json is that of %s", meta.ThreadID)
		return nil, context.Cause(ctx)
	}
	if differ(meta, rec) {
		// A process that ends it is about to make the two agree, or it has ended since they
		// were read.
		if settling, err := r.Checker.Threads.Life.Held(life.Key{Thread: f.ID}); err != nil || settling {
			return &meta, err
		}
		now, err := r.Checker.Threads.Store.Get(ctx, f.ID)
		if errors.Is(err, thread.ErrNotFound) { // deleted since
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if meta, err = left.Meta().Read(); err != nil { // removed since; the next look tells
			return nil, context.Cause(ctx)
		}
		rec = r.outline(now)
		r.compareEnd(meta, rec)
	}
	if rec.Status.Terminal() {
		r.compareTranscript(left, meta, rec)
	}
	// By an edited row it would be written elsewhere. Of what others said nothing is made.
	if rec.Status.Terminal() && !differ(meta, rec) && meta.Imported == nil {
		r.compareRendering(f, rec)
	}
	if rec.Status.Terminal() && leftLives(f, rec) {
		r.compareLives(rec)
	}
	return &meta, context.Cause(ctx)
}

// withoutMeta tells of a folder that must have a thread.json. A thread that failed before
// it had one has none, nor has one that is being made.
func (r *reconciling) withoutMeta(rec row) {
	if rec.QueuedAt.IsZero() || rec.neverRan || rec.Status == thread.Created && r.recent(rec.CreatedAt) {
		return
	}
	if r.reading {
		r.find(findMetaMissing, rec.ThreadID, "the thread is %s and has no thread.json", rec.Status)
	} else {
		r.find(findMetaUnreadable, rec.ThreadID, "the thread is %s and has no thread.json", rec.Status)
	}
}

// differ reports whether thread.json and row tell of another end, or of none.
func differ(meta thread.Meta, rec row) bool {
	if !meta.Status.Terminal() || !rec.Status.Terminal() {
		return meta.Status.Terminal() != rec.Status.Terminal()
	}
	return meta.Status != rec.Status || meta.Cost != rec.Cost || meta.Kind != rec.Kind || meta.Directive != rec.Directive ||
		meta.Outcome == nil || digest(meta.Outcome) != rec.end
}

// compareEnd says what is wrong between a thread.json and a row that differ.
func (r *reconciling) compareEnd(meta thread.Meta, rec row) {
	id := rec.ThreadID
	switch {
	case !differ(meta, rec):
	case !meta.Status.Terminal():
		r.findMendable(findMetaBehind, id, func(ctx context.Context) (bool, error) { return r.complete(ctx, id) },
			"the row says %s and thread.json still %s", rec.Status, meta.Status)
	case rec.Status == thread.Running: // a process of another machine may be at work
		r.find(findMetaDisagrees, id, "thread.json says %s and the row %s", meta.Status, rec.Status)
	default:
		kind := findRowEdited
		if !rec.Status.Terminal() {
			kind = findRowBehind
		}
		if _, err := r.signedEnd(meta, false); err != nil {
			r.find(findMetaDisagrees, id, "the row says %s, thread.json %s, and %v", told(rec.Status, rec.Cost), told(meta.Status, meta.Cost), err)
			return
		}
		r.findMendable(kind, id, func(ctx context.Context) (bool, error) { return r.correct(ctx, id) },
			"the row says %s, and what is signed %s", told(rec.Status, rec.Cost), told(meta.Status, meta.Cost))
	}
}

func told(state thread.State, cost thread.Cost) string {
	return fmt.Sprintf("%s after %d turns for %s", state, cost.Turns, cost.Spend)
}

// compareTranscript holds the length of a transcript against thread.json. Something may
// have been added: who resumed the thread.
func (r *reconciling) compareTranscript(left records.Thread, meta thread.Meta, rec row) {
	if meta.Transcript == nil {
		return
	}
	size, err := sizeOf(left.Transcript())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.find(findTranscript, rec.ThreadID, "the transcript is gone")
	case err != nil:
		r.find(findTranscript, rec.ThreadID, "%v", err)
	case size < meta.Transcript.Bytes:
		r.find(findTranscript, rec.ThreadID, "it has %d bytes, and thread.json vouches for %d", size, meta.Transcript.Bytes)
	}
}

func sizeOf(from records.Source) (int64, error) {
	f, err := from.Open()
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	return f.Size()
}

// compareRendering looks for the knowledge entry of a thread that has a transcript. Where
// several machines have the threads, it is on the one that has run the thread.
func (r *reconciling) compareRendering(f records.Found, rec row) {
	if !f.HasWords {
		return
	}
	err := r.Checker.Threads.Finisher.CheckRendering(rec.Record)
	if err == nil {
		return
	}
	t := r.Checker.Threads
	if errors.Is(err, fs.ErrNotExist) && t.Fleet != nil && t.Life.Reach(rec.Process) == life.Elsewhere {
		return
	}
	if held, lookErr := r.Checker.Threads.Life.Held(life.Key{Thread: f.ID}); held || lookErr != nil {
		return
	}
	detail := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		detail = "the thread has ended and has no knowledge entry"
	}
	r.findMendable(findRendering, f.ID, func(ctx context.Context) (bool, error) { return r.render(ctx, f.ID) }, "%s", detail)
}

// leftLives reports whether a folder has locks of the runs of a thread.
func leftLives(f records.Found, rec row) bool { return f.HasRuns || f.HasLives && rec.Run.NamesLife() }

// livesAreLeft reports whether a process has left locks of a thread. Somebody who completes
// the end of the thread, or comes too late to settle it, has one for a moment: it is gone, or
// held, at the next look then.
func (r *reconciling) livesAreLeft(rec row) (bool, error) {
	for range 2 {
		if held, err := r.Checker.Threads.Life.Held(life.Key{Thread: rec.ThreadID}); held || err != nil {
			return false, err
		}
		if now, _, err := r.Checker.Threads.Records.Look(rec.ThreadID); err != nil || !leftLives(now, rec) {
			return false, err
		}
	}
	return true, nil
}

// compareLives looks for locks that a process has left whose thread has ended.
func (r *reconciling) compareLives(rec row) {
	left, err := r.livesAreLeft(rec)
	switch {
	case err != nil:
		r.find(findLock, rec.ThreadID, "its lock cannot be looked at: %v", err)
	case left:
		r.findMendable(findLock, rec.ThreadID, func(ctx context.Context) (bool, error) { return r.forgetLives(ctx, rec.ThreadID) },
			"the thread has ended, and locks of its process are left")
	}
}
