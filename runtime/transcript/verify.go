package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Verifier checks the signatures of checkpoints; a key of package sign is one. The
// error is sign.ErrOtherKey when that of the fingerprint does not count.
type Verifier interface {
	VerifyFrom(fingerprint, hexHash, sig string) error
}

// Report says how much of a transcript is vouched for.
type Report struct {
	ThreadID    thread.ID // that every line names; empty for an empty transcript
	Checkpoints int       // good ones
	LastTurn    int       // of the last good checkpoint; 0 when there is none
	Turns       int       // of the last answer of the model; 0 when there is none
	Bytes       int64     // of the file
	SignedBytes int64     // up to and including the last good checkpoint
	TornBytes   int64     // after the last newline
}

// UnsignedBytes are complete lines after the last checkpoint, as a crash leaves
// them.
func (r Report) UnsignedBytes() int64 { return r.Bytes - r.SignedBytes - r.TornBytes }

// Damage is what was done to a transcript, as far as it can be told.
type Damage string

// The kinds of damage.
const (
	Altered   Damage = "altered"   // bytes differ from those that were signed
	Reordered Damage = "reordered" // a line stands where an earlier or repeated one cannot
	Spliced   Damage = "spliced"   // a line of another thread
	Stripped  Damage = "stripped"  // lines, checkpoints or signatures are missing
	Truncated Damage = "truncated" // shorter than thread.json says
	Foreign   Damage = "foreign"   // signed by another key
)

// TamperError reports the first damage of a transcript.
type TamperError struct {
	Turn   int // the first turn that cannot be trusted
	Line   int // where it was noticed, from 1
	Damage Damage
	Detail string
}

func (e *TamperError) Error() string {
	return fmt.Sprintf("transcript does not verify from turn %d on: %s, line %d: %s", e.Turn, e.Damage, e.Line, e.Detail)
}

// Verify checks a transcript and returns a *[TamperError] at the first damage,
// together with the report on what comes before it. With a nil verifier only
// hashes are checked, which finds accidents but no forger.
//
// A head, from a signed thread.json, fixes how the transcript ended: nothing of
// it may be missing, and nothing may follow that is not signed. Without a head
// the thread ended by a crash, and lines after the last checkpoint (the
// report's UnsignedBytes and TornBytes) are for the caller to judge.
func Verify(from records.Source, v Verifier, head *thread.TranscriptHead) (Report, error) {
	f, err := from.Open()
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = f.Close() }()
	size, err := f.Size()
	if err != nil {
		return Report{}, err
	}

	c := checker{verifier: v, head: head, hash: sha256.New(), report: Report{Bytes: size}}
	// Lines that are appended meanwhile are not looked at.
	c.lines = newLineReader(io.NewSectionReader(f, 0, size))
	for err == nil {
		err = c.step()
	}
	if errors.Is(err, io.EOF) {
		err = c.finish()
	}
	return c.report, err
}

// checker holds what is known of the lines before the current one.
type checker struct {
	verifier Verifier
	head     *thread.TranscriptHead
	lines    *lineReader
	hash     hash.Hash
	seq      int64
	reached  bool // the head's length was reached and its hash was right
	report   Report
}

// step checks one line. It returns io.EOF after the last complete one.
func (c *checker) step() error {
	start := c.lines.offset
	line, err := c.lines.next()
	if torn, ok := errors.AsType[*TornError](err); ok {
		c.report.TornBytes = torn.Bytes
		return io.EOF
	}
	if isLineError(err) {
		return c.damaged(Altered, "%v", errLineTooLong)
	}
	if err != nil {
		return err
	}
	e, err := decodeLine(line)
	if err != nil {
		return c.damaged(Altered, "not an event: %v", err)
	}
	if err := c.place(e); err != nil {
		return err
	}
	switch e.Type {
	case thread.EventCheckpoint:
		err = c.checkpoint(e, start)
	case thread.EventCognitionOut:
		err = c.answer(e)
	}
	if err != nil {
		return err
	}
	c.hash.Write(line)
	c.hash.Write([]byte{'\n'})
	return c.compareHead()
}

// place checks that the event belongs here.
func (c *checker) place(e thread.Event) error {
	if c.report.ThreadID == "" {
		c.report.ThreadID = e.ThreadID
	}
	want := c.seq + 1
	switch {
	case e.ThreadID != c.report.ThreadID:
		return c.damaged(Spliced, "it is of thread %.80q", e.ThreadID)
	case e.Seq > want:
		// The error names this line, so it is made before reading on.
		stripped := c.damaged(Stripped, "seq is %d where %d was due", e.Seq, want)
		if c.follows(want) {
			stripped.Damage = Reordered
		}
		return stripped
	case e.Seq < want:
		return c.damaged(Reordered, "seq is %d where %d was due", e.Seq, want)
	}
	c.seq = e.Seq
	return nil
}

// follows reports whether a later line has that number.
func (c *checker) follows(seq int64) bool {
	for {
		e, err := c.lines.nextEvent()
		switch {
		case err == nil && e.Seq == seq:
			return true
		case err != nil && !isLineError(err):
			return false
		}
	}
}

// checkpoint checks a checkpoint line that starts at start.
func (c *checker) checkpoint(e thread.Event, start int64) error {
	p, err := Decode[Checkpoint](e)
	if err != nil {
		return c.damaged(Altered, "%v", err)
	}
	// The turn a broken checkpoint names is the better guess where it can be
	// true: two checkpoints may belong to one turn, and a turn may have none.
	turn := c.nextTurn()
	if p.Turn >= c.report.LastTurn && p.Turn > 0 {
		turn = p.Turn
	}
	switch {
	case p.ByteOffset != start:
		return c.damagedIn(turn, Altered, "checkpoint at byte %d says %d", start, p.ByteOffset)
	case p.Hash != hex.EncodeToString(c.hash.Sum(nil)):
		return c.damagedIn(turn, Altered, "content before the checkpoint differs from what it vouches for")
	case p.Turn < c.report.LastTurn:
		return c.damagedIn(turn, Altered, "checkpoint of turn %d after that of turn %d", p.Turn, c.report.LastTurn)
	}
	if c.verifier != nil {
		if p.Sig == "" {
			return c.damagedIn(turn, Stripped, "checkpoint has no signature")
		}
		switch err := c.verifier.VerifyFrom(p.FP, p.Hash, p.Sig); {
		case errors.Is(err, sign.ErrOtherKey):
			return c.damagedIn(turn, Foreign, "checkpoint is signed by key %.80q", p.FP)
		case err != nil:
			return c.damagedIn(turn, Altered, "signature of the checkpoint: %v", err)
		}
	}
	c.report.Checkpoints++
	c.report.LastTurn = p.Turn
	c.report.SignedBytes = c.lines.offset
	return nil
}

// answer checks that the turn before an answer of the model has its checkpoint,
// which a thread writes before it asks again. So a transcript whose checkpoints
// were taken out, and its lines numbered anew, shows without a head too.
func (c *checker) answer(e thread.Event) error {
	p, err := Decode[CognitionOut](e)
	if err != nil {
		return c.damaged(Altered, "%v", err)
	}
	if p.Turn > c.nextTurn() {
		return c.damaged(Stripped, "turn %d follows, and turn %d has no checkpoint", p.Turn, c.nextTurn())
	}
	c.report.Turns = max(c.report.Turns, p.Turn)
	return nil
}

// compareHead checks the head where its length is reached.
func (c *checker) compareHead() error {
	if c.head == nil || c.lines.offset != c.head.Bytes {
		return nil
	}
	if c.head.Hash != hex.EncodeToString(c.hash.Sum(nil)) {
		return c.damagedIn(max(1, c.report.LastTurn), Altered, "content differs from what thread.json vouches for")
	}
	if c.head.Checkpoints != c.report.Checkpoints {
		return c.damaged(Stripped, "%d checkpoints where thread.json says %d", c.report.Checkpoints, c.head.Checkpoints)
	}
	c.reached = true
	return nil
}

// finish checks what can only be known at the end.
func (c *checker) finish() error {
	if c.head == nil {
		return nil
	}
	complete := c.report.Bytes - c.report.TornBytes
	switch {
	case complete < c.head.Bytes:
		return c.damaged(Truncated, "%d bytes where thread.json says %d", complete, c.head.Bytes)
	case !c.reached:
		return c.damaged(Altered, "no line ends at byte %d, where thread.json says the transcript ended", c.head.Bytes)
	case c.report.Bytes > max(c.report.SignedBytes, c.head.Bytes):
		return c.damaged(Altered, "unsigned bytes after the end that thread.json records")
	}
	return nil
}

// nextTurn is the first one that no good checkpoint covers.
func (c *checker) nextTurn() int { return c.report.LastTurn + 1 }

func (c *checker) damaged(d Damage, format string, args ...any) *TamperError {
	return c.damagedIn(c.nextTurn(), d, format, args...)
}

func (c *checker) damagedIn(turn int, d Damage, format string, args ...any) *TamperError {
	return &TamperError{Turn: turn, Line: c.lines.line, Damage: d, Detail: fmt.Sprintf(format, args...)}
}
