// Package recordstest holds implementations of [records.Records] against what that
// promises.
package recordstest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Subject is an implementation, in which no thread has left anything.
type Subject struct {
	records.Records
	// Hammer is a process that calls [Hammer] on these records.
	Hammer *exec.Cmd
	// Blind are the same records without a seal.
	Blind records.Records
}

// Run runs the suite. Open is called for each group.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for name, group := range map[string]func(*testing.T, Subject){
		"Meta": meta, "MetaIsNeverHalf": metaIsNeverHalf, "Blind": blind,
		"Transcript": transcripts, "Compressed": compressed, "TranscriptIsReadAsItGrows": growing, "Sizes": sizes,
		"Unknown": unknown, "Hostile": hostile, "Artifacts": artifacts, "Capabilities": capabilities, "Found": found, "Leftovers": leftovers, "Whole": whole, "Gone": gone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group(t, open(t))
		})
	}
}

const (
	one   thread.ID = "work/one-1772357400"
	other thread.ID = "other-1772357400"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// prepared are the records of a thread that has a place for them.
func prepared(t testing.TB, s records.Records, id thread.ID) records.Thread {
	t.Helper()
	of := s.Of(id)
	must(t, errors.Join(of.Check(), of.Prepare(), of.Prepare()))
	return of
}

func metaOf(id thread.ID, turns int) thread.Meta {
	at := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	return thread.Meta{
		ThreadID: id, Kind: thread.KindDirective, Directive: "work/one", Status: thread.Running, CreatedAt: at, UpdatedAt: at,
		Inputs: map[string]any{"text": strings.Repeat("Zoë ", turns%1000)}, Cost: thread.Cost{Turns: turns},
	}
}

// meta: a document is replaced as a whole, and its stamp tells that.
func meta(t *testing.T, s Subject) {
	doc := prepared(t, s, one).Meta()
	var before records.Stamp
	for turn := 1; turn < 4; turn++ {
		must(t, doc.Write(metaOf(one, turn)))
		got, err := doc.Read()
		peeked, peekErr := doc.Peek()
		if err != nil || peekErr != nil || got.Cost.Turns != turn || peeked.Cost.Turns != turn || got.ThreadID != one || got.Place != s.Seal().Place() {
			t.Fatalf("read %+v, peeked %+v, %v, %v", got, peeked, err, peekErr)
		}
		now, err := doc.Stamp()
		again, err2 := s.Of(one).Meta().Stamp()
		if err != nil || err2 != nil || now.Same(before) || !now.Same(again) {
			t.Errorf("stamps %+v, %+v after %+v, %v, %v", now, again, before, err, err2)
		}
		before = now
	}
	if signer := doc.Signer(); signer != s.Seal().Fingerprint() {
		t.Errorf("signed by %q", signer)
	}
	if begun, err := s.Of(one).Begun(); !begun || err != nil {
		t.Errorf("begun %t, %v", begun, err)
	}
	must(t, doc.Remove())
	if _, err := doc.Read(); !errors.Is(err, thread.ErrNoMeta) {
		t.Errorf("removed: %v", err)
	}
}

// Hammer replaces the metadata of a thread until the process is killed, and writes a
// line to out after each.
func Hammer(r records.Records, out io.Writer) error {
	if err := r.Of(one).Prepare(); err != nil {
		return err
	}
	for turn := 1; ; turn++ {
		if err := r.Of(one).Meta().Write(metaOf(one, turn)); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, turn); err != nil {
			return err
		}
	}
}

// metaIsNeverHalf: whoever reads while another process writes, or after that was
// killed between any two of its steps, finds a whole document, and the last one
// that was written or a later one.
func metaIsNeverHalf(t *testing.T, s Subject) {
	lines, err := s.Hammer.StdoutPipe()
	must(t, err)
	must(t, s.Hammer.Start())
	doc, written := s.Of(one).Meta(), 0
	for scan := bufio.NewScanner(lines); scan.Scan(); {
		if _, err := fmt.Sscan(scan.Text(), &written); err != nil {
			t.Fatal(err)
		}
		now, err := doc.Read()
		if err != nil || now.Cost.Turns < written {
			t.Fatalf("turn %d after %d was written, %v", now.Cost.Turns, written, err)
		}
		if written == 200 {
			must(t, s.Hammer.Process.Kill())
		}
	}
	_ = s.Hammer.Wait() // it was killed
	if now, err := doc.Read(); err != nil || now.Cost.Turns < written || written < 200 {
		t.Errorf("turn %d after a crash behind %d, %v", now.Cost.Turns, written, err)
	}
	must(t, doc.Write(metaOf(one, 7)))
	if now, err := doc.Read(); err != nil || now.Cost.Turns != 7 {
		t.Errorf("turn %d after the next write, %v", now.Cost.Turns, err)
	}
}

// blind: without a seal nothing is believed, and nothing is written.
func blind(t *testing.T, s Subject) {
	must(t, prepared(t, s, one).Meta().Write(metaOf(one, 1)))
	doc := s.Blind.Of(one).Meta()
	if _, err := doc.Read(); err == nil {
		t.Error("read")
	}
	if err := doc.Write(metaOf(one, 2)); err == nil {
		t.Error("written")
	}
	if got, err := doc.Peek(); err != nil || got.Cost.Turns != 1 {
		t.Errorf("peeked %+v, %v", got, err)
	}
}

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
	head := said(t, s, one, 4000)
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
	if err != nil || report.Bytes <= head.Bytes || report.Turns != 4000 {
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

// sizes: large records are whole, and what is too large to be read is not written.
func sizes(t *testing.T, s Subject) {
	of := prepared(t, s, one)
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	hash := hashOf(content)
	_, err := of.Artifacts().Write(hash, content)
	must(t, err)
	if got, err := of.Artifacts().Load(hash); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d of %d bytes of an artifact, %v", len(got), len(content), err)
	}
	must(t, of.Meta().Write(metaOf(one, 1)))
	huge := metaOf(one, 2)
	huge.Inputs = map[string]any{"text": strings.Repeat("x", 17<<20)}
	if err := of.Meta().Write(huge); err == nil {
		t.Error("17 MiB of metadata are written")
	}
	if got, err := of.Meta().Read(); err != nil || got.Cost.Turns != 1 {
		t.Errorf("afterwards it says %+v, %v", got.Cost, err)
	}
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// unknown: of a thread that has left nothing there is nothing, and looking makes
// nothing.
func unknown(t *testing.T, s Subject) {
	of := s.Of(one)
	must(t, of.Check())
	if begun, err := of.Begun(); begun || err != nil {
		t.Errorf("begun %t, %v", begun, err)
	}
	if _, err := of.Meta().Read(); !errors.Is(err, thread.ErrNoMeta) {
		t.Errorf("metadata: %v", err)
	}
	if of.Meta().Signer() != "" {
		t.Error("somebody has signed nothing")
	}
	_, peek := of.Meta().Peek()
	_, stamp := of.Meta().Stamp()
	_, touched := of.Touched()
	_, load := of.Artifacts().Load(strings.Repeat("0", 16))
	for what, err := range map[string]error{"peek": peek, "stamp": stamp, "touched": touched, "remove": of.Meta().Remove()} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if fault, ok := errors.AsType[*tool.Fault](load); !ok || fault.Code != tool.CodeNotFound {
		t.Errorf("artifact: %v", load)
	}
	for name, source := range map[string]records.Source{"transcript": of.Transcript(), "log": of.Log(), "capabilities": of.Capabilities()} {
		_, open := source.Open()
		_, stamp := source.Stamp()
		if !errors.Is(open, fs.ErrNotExist) || !errors.Is(stamp, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v", name, open, stamp)
		}
	}
	list, err := of.Artifacts().List()
	if err != nil || len(list) != 0 || of.Artifacts().ShareWith(other) != nil {
		t.Errorf("artifacts %v, %v", list, err)
	}
	if _, is, err := s.Look(one); is || err != nil {
		t.Errorf("found %t, %v", is, err)
	}
	if got := walked(t, s, math.MaxInt); len(got) != 0 {
		t.Errorf("looking has made %v", got)
	}
}

// hostile: no place is made for what is no id, or too long to be one.
func hostile(t *testing.T, s Subject) {
	for _, id := range []thread.ID{"", ".", "..", "../up-1", "a/../../up-1", "/root-1", "a//b-1", `a\b-1`, "a\x00b-1", "a\nb-1", thread.ID(strings.Repeat("x", 300)), thread.ID(strings.Repeat("x/", 3000) + "y-1")} {
		for what, err := range map[string]error{"checked": s.Of(id).Check(), "prepared": s.Of(id).Prepare()} {
			if !errors.Is(err, thread.ErrUnfit) && !errors.Is(err, thread.ErrBadID) {
				t.Errorf("%.40q is %s: %v", id, what, err)
			}
		}
	}
	if got := walked(t, s, math.MaxInt); len(got) != 0 {
		t.Errorf("there are %v", got)
	}
	of := prepared(t, s, one)
	for _, ref := range []string{"", "..", "../../" + string(other), strings.Repeat("?", 16), strings.Repeat("0", 15)} {
		if _, err := of.Artifacts().Load(ref); err == nil {
			t.Errorf("%q is an artifact", ref)
		}
	}
}

// artifacts: they are found by a part of their hash, listed oldest first, shared, and
// refused when their content is another.
func artifacts(t *testing.T, s Subject) {
	of, successor := prepared(t, s, one), prepared(t, s, other)
	texts := [][]byte{[]byte("first"), []byte("second"), {0xff, 0xfe, 0}}
	var names []string
	for _, content := range texts {
		hash := hashOf(content)
		where, err := of.Artifacts().Write(hash, content)
		again, err2 := of.Artifacts().Write(hash, content)
		if err != nil || err2 != nil || where == "" || where != again {
			t.Fatalf("kept at %q and %q, %v, %v", where, again, err, err2)
		}
		if got, err := of.Artifacts().Load(hash[:16]); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%q, %v", got, err)
		}
		names = append(names, hash)
	}
	must(t, errors.Join(of.Artifacts().ShareWith(other), of.Artifacts().ShareWith(other)))
	for _, of := range []records.Thread{of, successor} {
		list, err := of.Artifacts().List()
		must(t, err)
		for _, name := range names {
			if !slices.ContainsFunc(list, func(a records.Artifact) bool { return strings.HasPrefix(a.Name, name+".") && a.Size > 0 }) || len(list) != len(names) {
				t.Errorf("%s is not among %v of %s", name, list, of.ID())
			}
		}
		seen := 0
		must(t, of.Artifacts().Each(func(name string, open func() (records.Reader, error)) error {
			r, err := open()
			must(t, err)
			content, err := io.ReadAll(io.NewSectionReader(r, 0, math.MaxInt64))
			if err != nil || !strings.HasPrefix(name, hashOf(content)) {
				t.Errorf("%s is %q, %v", name, content, err)
			}
			seen++
			return r.Close()
		}))
		if seen != len(names) {
			t.Errorf("%d are visited", seen)
		}
	}
	wrong := strings.Repeat("ab", 32)
	_, err := of.Artifacts().Write(wrong, []byte("not of that hash"))
	must(t, err)
	if got, err := of.Artifacts().Load(wrong); err == nil {
		t.Errorf("%q is taken for what was kept", got)
	}
	list, err := of.Artifacts().List()
	must(t, err)
	must(t, of.Artifacts().Remove(list[0].Name))
	if left, err := of.Artifacts().List(); err != nil || len(left) != len(list)-1 || of.Artifacts().Remove("../thread.json") == nil {
		t.Errorf("left are %v, %v", left, err)
	}
	enough := errors.New("enough")
	if err := of.Artifacts().Each(func(string, func() (records.Reader, error)) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("the visit goes on: %v", err)
	}
}

// capabilities: the text is replaced whole.
func capabilities(t *testing.T, s Subject) {
	text := prepared(t, s, one).Capabilities()
	for _, want := range []string{"a longer text", "short"} {
		signed, err := s.Seal().Attach([]byte(want+"\n"), ".md", records.CapabilitiesName(one), time.Now())
		must(t, errors.Join(err, text.Write(signed)))
		r, err := text.Open()
		must(t, err)
		got, err := io.ReadAll(io.NewSectionReader(r, 0, math.MaxInt64))
		must(t, errors.Join(err, r.Close()))
		if !bytes.Equal(got, signed) || s.Seal().CheckText(got, ".md", records.CapabilitiesName(one)) != nil {
			t.Errorf("%q, want %q", got, signed)
		}
		if err := s.Seal().CheckText(got, ".md", records.CapabilitiesName(other)); !errors.Is(err, sign.ErrOtherItem) {
			t.Errorf("it counts for another thread: %v", err)
		}
	}
}

func walked(t testing.TB, s records.Records, most int) (ids []thread.ID) {
	t.Helper()
	all, err := s.Walk(most, func(f records.Found) error {
		ids = append(ids, f.ID)
		return nil
	})
	if err != nil || all != (len(ids) < most || most == math.MaxInt) && all {
		t.Errorf("all %t of %v, %v", all, ids, err)
	}
	return ids
}

// found: every thread that has left something is found once, in the order of their
// names, and no more than were asked for.
func found(t *testing.T, s Subject) {
	must(t, prepared(t, s, one).Meta().Write(metaOf(one, 1)))
	prepared(t, s, other)
	said(t, s, other, 1)
	below := one + "/below-2"
	must(t, prepared(t, s, below).Meta().Write(metaOf(below, 1)))
	prepared(t, s, "empty-1") // nothing of a thread is there
	want := []thread.ID{other, one, below}
	if got := walked(t, s, math.MaxInt); !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if got := walked(t, s, 2); len(got) > 2 {
		t.Errorf("found %v of at most two", got)
	}
	for id, want := range map[thread.ID]records.Found{
		one: {ID: one, HasMeta: true}, other: {ID: other, HasWords: true}, below: {ID: below, HasMeta: true},
	} {
		f, is, err := s.Look(id)
		if f.Where == "" {
			t.Errorf("%s is nowhere", id)
		}
		if f.Where = ""; f != want || !is || err != nil {
			t.Errorf("%s: %+v, %t, %v", id, f, is, err)
		}
	}
	stop := errors.New("stop")
	if _, err := s.Walk(math.MaxInt, func(records.Found) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the walk goes on: %v", err)
	}
}

// leftovers: the place of a start that was cut short is taken away, and nothing of a
// thread.
func leftovers(t *testing.T, s Subject) {
	empty := prepared(t, s, "empty-1")
	if removed, err := empty.RemoveLeftover(); !removed || err != nil {
		t.Errorf("nothing: %t, %v", removed, err)
	}
	if _, err := empty.Touched(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	of := prepared(t, s, one)
	must(t, of.Meta().Write(metaOf(one, 1)))
	if removed, err := of.RemoveLeftover(); removed || err != nil {
		t.Errorf("a thread: %t, %v", removed, err)
	}
	if _, err := of.Meta().Read(); err != nil {
		t.Error(err)
	}
}
