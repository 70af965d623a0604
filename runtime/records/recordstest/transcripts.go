package recordstest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// said writes a transcript of so many turns and returns its head.
func said(t testing.TB, s records.Records, id thread.ID, turns int) thread.TranscriptHead {
	t.Helper()
	w, err := transcript.Open(s.Of(id).Transcript(), id, transcript.Options{Signer: s.Seal().Key()})
	must(t, err)
	for turn := 1; turn <= turns; turn++ {
		must(t, w.Append(thread.EventCognitionOut, transcript.CognitionOut{Turn: turn}))
		must(t, w.Checkpoint(turn))
	}
	must(t, w.InPlace())
	head, err := w.Finish(thread.Outcome{State: thread.Completed}, thread.Cost{Turns: turns})
	must(t, errors.Join(err, w.Close()))
	return head
}

// transcripts: what is appended verifies, is continued by the next who opens it, and a
// line that was cut off is not.
func transcripts(t *testing.T, s Subject) {
	of := prepared(t, s, one)
	head := said(t, s, one, 3)
	report, err := transcript.Verify(of.Transcript(), s.Seal(), &head)
	if err != nil || report.ThreadID != one || report.Turns != 3 || report.UnsignedBytes()+report.TornBytes != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	before, err := of.Transcript().Stamp()
	must(t, err)
	if before.Size != head.Bytes {
		t.Errorf("%d bytes by its stamp, %d by its head", before.Size, head.Bytes)
	}
	torn, err := of.Transcript().Append()
	must(t, err)
	_, err = torn.Write([]byte(`{"seq":`))
	must(t, errors.Join(err, torn.Sync(), torn.Close()))
	if after, err := of.Transcript().Stamp(); err != nil || after.Same(before) || after.Object != before.Object {
		t.Errorf("stamp %+v after %+v, %v", after, before, err)
	}
	w, err := transcript.Open(of.Transcript(), one, transcript.Options{Signer: s.Seal().Key()})
	must(t, err)
	if w.Decided() == nil {
		t.Error("the end is forgotten")
	}
	must(t, w.Close())
	report, err = transcript.Verify(of.Transcript(), s.Seal(), nil)
	if err != nil || report.TornBytes != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	cut, err := of.Transcript().Append()
	must(t, err)
	must(t, errors.Join(cut.Truncate(head.Bytes-1), cut.Sync(), cut.Close()))
	if _, err := transcript.Verify(of.Transcript(), s.Seal(), &head); err == nil {
		t.Error("a truncated transcript verifies")
	}
}

// turns are those of a transcript of several frames.
const turns = 1000

// compressed: a transcript reads the same before and after it was compressed, and
// is written to like any other.
func compressed(t *testing.T, s Subject) {
	of := prepared(t, s, one)
	if _, err := of.Whole().Compressible(); err != nil {
		t.Fatal(err)
	}
	prepared(t, s, other)
	said(t, s, other, 1)
	if before, _, err := s.Of(other).Whole().Compress(); before != 0 || err != nil {
		t.Errorf("a short one: %d, %v", before, err)
	}
	head := said(t, s, one, turns)
	plain := readTranscript(t, of, head)
	bytes, err := of.Whole().Compressible()
	must(t, err)
	before, after, err := of.Whole().Compress()
	if err != nil || bytes != head.Bytes || before != bytes || after <= 0 || after >= before/2 {
		t.Fatalf("%d of %d bytes became %d, %v", before, bytes, after, err)
	}
	if again, _, err := of.Whole().Compress(); again != 0 || err != nil {
		t.Errorf("compressed again: %d, %v", again, err)
	}
	if size, err := of.Whole().Size(); err != nil || size != after {
		t.Errorf("it takes %d bytes, want %d: %v", size, after, err)
	}
	if packed := readTranscript(t, of, head); packed != plain {
		t.Error("it reads as something else")
	}
	f, found, err := s.Look(one)
	if begun, err2 := of.Begun(); !begun || !found || !f.HasWords || err != nil || err2 != nil {
		t.Errorf("begun %t, found %+v, %v, %v", begun, f, err, err2)
	}
	open, err := of.Transcript().Open()
	must(t, err)
	w, err := transcript.Open(of.Transcript(), one, transcript.Options{Signer: s.Seal().Key()})
	must(t, err)
	must(t, w.Add(transcript.Resumed(other, "other", "go on", 1)))
	must(t, errors.Join(w.InPlace(), w.Close()))
	old, err := io.ReadAll(io.NewSectionReader(open, 0, math.MaxInt64))
	if must(t, errors.Join(err, open.Close())); hashOf(old) != plain.hash {
		t.Error("who was reading meanwhile reads something else")
	}
	report, err := transcript.Verify(of.Transcript(), s.Seal(), &head)
	if err != nil || report.Bytes <= head.Bytes || report.Turns != turns {
		t.Errorf("added to: %+v, %v", report, err)
	}
	if again, _, err := of.Whole().Compress(); again <= before || err != nil {
		t.Errorf("compressed anew: %d, %v", again, err)
	}
	if report, err = transcript.Verify(of.Transcript(), s.Seal(), &head); err != nil || report.Bytes <= head.Bytes {
		t.Errorf("compressed anew: %+v, %v", report, err)
	}
	must(t, of.Whole().Remove())
	if _, err := of.Transcript().Open(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: %v", err)
	}
}

// reading is what is read of a transcript.
type reading struct {
	hash, pages, last string
	size              int64
	changed           int64
	turns             int
	mentions          int
}

func readTranscript(t *testing.T, of records.Thread, head thread.TranscriptHead) (r reading) {
	t.Helper()
	open, err := of.Transcript().Open()
	must(t, err)
	content, err := io.ReadAll(io.NewSectionReader(open, 0, math.MaxInt64))
	must(t, err)
	for _, at := range []int64{0, 1, 256<<10 - 5, 256 << 10, int64(len(content)) - 7, 40} { // in any order
		part := make([]byte, 10)
		n, err := open.ReadAt(part, at)
		if want := content[at:min(at+10, int64(len(content)))]; !bytes.Equal(part[:n], want) || (n < 10) != errors.Is(err, io.EOF) {
			t.Errorf("at %d: %q, %v, want %q", at, part[:n], err, want)
		}
	}
	if r.size, err = open.Size(); err != nil || r.size != int64(len(content)) || r.size != head.Bytes {
		t.Errorf("size %d of %d, %v", r.size, len(content), err)
	}
	must(t, open.Close())
	stamp, err := of.Transcript().Stamp()
	must(t, err)
	if r.hash, r.changed = hashOf(content), stamp.Changed.UnixNano(); stamp.Size != r.size {
		t.Errorf("size by its stamp: %d", stamp.Size)
	}
	for cursor := ""; ; {
		page, err := transcript.Tail(of.Transcript(), transcript.TailOptions{Cursor: cursor, MaxBytes: 40_000})
		must(t, err)
		r.pages = hashOf([]byte(r.pages + page.Content))
		if cursor = page.Next; page.AtEnd {
			break
		}
	}
	page, err := transcript.Tail(of.Transcript(), transcript.TailOptions{Last: 3})
	must(t, err)
	r.last = page.Content
	found, err := transcript.Mentions(of.Transcript(), []string{"cognition_out", "nowhere"})
	must(t, err)
	r.mentions = len(found)
	outcome, cost, err := transcript.LastOutcome(of.Transcript())
	must(t, err)
	if outcome == nil || cost == nil {
		t.Fatal("it has no end")
	}
	r.turns = cost.Turns
	return r
}

// growing: a reader that is open sees what is appended, and a watcher is told or not;
// it looks for itself.
func growing(t *testing.T, s Subject) {
	of := prepared(t, s, one).Transcript()
	w, err := of.Append()
	must(t, err)
	r, err := of.Open()
	must(t, err)
	written, stop := of.Watch()
	defer stop()
	_ = written
	var all []byte
	for range 20 {
		line := []byte(strings.Repeat("x", 1000) + "\n")
		_, err := w.Write(line)
		must(t, err)
		all = append(all, line...)
		size, err := r.Size()
		must(t, err)
		got, err := io.ReadAll(io.NewSectionReader(r, 0, math.MaxInt64))
		if err != nil || size != int64(len(all)) || !bytes.Equal(got, all) {
			t.Fatalf("%d of %d bytes are read, the size is %d: %v", len(got), len(all), size, err)
		}
	}
	part := make([]byte, 2000)
	if n, err := r.ReadAt(part, int64(len(all))-500); n != 500 || !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes at the end, %v", n, err)
	}
	must(t, errors.Join(r.Close(), w.Close()))
}
