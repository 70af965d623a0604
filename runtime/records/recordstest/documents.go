package recordstest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

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
