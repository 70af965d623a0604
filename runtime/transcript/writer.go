package transcript

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Streamed text is written at the latest after batchDelay, and as soon as
// batchBytes of it have gathered.
const (
	batchDelay = 50 * time.Millisecond
	batchBytes = 4 << 10
)

// maxStreamed is how much of an answer is written as it is streamed. The whole of it
// comes with its end; of what is longer than people read along only the length is
// written until then.
const maxStreamed = 256 << 10

// Signer signs the hashes of checkpoints; *sign.Key is one.
type Signer interface {
	Sign(hexHash string) string
	Fingerprint() string
}

// Options are what a writer needs from its surroundings.
type Options struct {
	Signer Signer           // nil: checkpoints carry no signature
	Now    func() time.Time // nil: time.Now
	Mask   Masker           // hides secrets; nil hides nothing
}

// Masker hides secrets in what is written.
type Masker interface {
	// MaskJSON hides them in the strings of a JSON value.
	MaskJSON(value []byte) []byte
	// Begun is how many bytes at the end of a text may be the beginning of a secret.
	Begun(text string) int
}

// Writer appends to a transcript. Its opener must hold the thread's life
// lock. Its methods may be called from several goroutines; the order of calls
// is the order of lines. Once a write has failed every later call returns that
// error, because what follows an unfinished line could not be read; only Finish
// cuts that line off and tries again, for the space may have come back.
type Writer struct {
	id     thread.ID
	signer Signer
	now    func() time.Time
	mask   Masker

	mu          sync.Mutex
	f           records.Appender
	err         error // of the first failed write
	seq         int64 // of the last line
	offset      int64 // bytes written, all of them in hash
	hash        hash.Hash
	checkpoints int
	turn        int        // of the last checkpoint
	checked     bool       // the last line is a checkpoint
	syncing     chan error // gets what becomes of the checkpoint on its way to disk; nil: none is
	end         *Ended     // the terminal event; nil until it is there
	finished    bool       // by this writer, which takes nothing more
	live        *live      // nil: nobody follows
	answer      lastAnswer

	streaming int // the turn whose answer is streamed
	streamed  int // bytes of it so far

	pending struct { // streamed text that is not written yet
		turn int
		kind llm.BlockType
		text strings.Builder
		// of arguments that are not written here, in bytes
		hidden int
		usage  *llm.Usage
		due    *time.Timer // nil while nothing is pending
	}
}

// ErrEnded is returned for what comes after the end that the same writer has
// recorded, such as the word of a tool that was left behind.
var ErrEnded = errors.New("the thread has ended")

// InPlace returns an error wrapping [records.ErrLost] when readers do not find what
// this writer writes.
func (w *Writer) InPlace() error { return w.f.InPlace() }

// Open creates the transcript of a thread, or continues the one that is there.
// A torn last line is cut off, and an error_classified event says so. Damage in
// the middle does not hinder it: a thread must be able to end whatever its file
// looks like, and naming damage is for [Verify].
func Open(at records.Transcript, id thread.ID, o Options) (*Writer, error) {
	f, err := at.Append()
	if err != nil {
		return nil, err
	}
	w := &Writer{id: id, signer: o.Signer, now: o.Now, mask: o.Mask, f: f, hash: sha256.New()}
	if w.now == nil {
		w.now = time.Now
	}
	if err := w.restore(); err != nil {
		return nil, errors.Join(fmt.Errorf("continue transcript: %w", err), f.Close())
	}
	return w, nil
}

// TornCategory is that of the event which says that a torn line was cut off.
const TornCategory = "transcript"

// restore brings the writer to where the one before it stopped.
func (w *Writer) restore() error {
	size, err := w.f.Size()
	if err != nil {
		return err
	}
	complete, err := lineStart(w.f, size)
	if err != nil {
		return err
	}
	torn := size - complete
	if torn > 0 {
		if err := w.f.Truncate(complete); err != nil {
			return err
		}
	}
	if err := w.replay(io.NewSectionReader(w.f, 0, complete)); err != nil {
		return err
	}
	w.offset = complete
	if torn == 0 {
		return nil
	}
	return w.write(thread.EventErrorClassified, ErrorClassified{
		Category: TornCategory, Code: "torn_line",
		Message: fmt.Sprintf("cut off %d bytes of a line that a crash left unfinished", torn),
	})
}

// replay reads what is there, once. Every line has a number, one that is not an
// event too, so that the number of lines is the last one.
func (w *Writer) replay(r io.Reader) error {
	lines := newLineReader(io.TeeReader(r, w.hash))
	for {
		e, err := lines.nextEvent()
		if errors.Is(err, io.EOF) {
			return w.wholeEnd()
		}
		if err != nil && !isLineError(err) {
			return err
		}
		w.seq++
		w.checked = e.Type == thread.EventCheckpoint
		if w.checked {
			w.checkpoints++
			if c, err := Decode[Checkpoint](e); err == nil {
				w.turn = max(w.turn, c.Turn)
			}
		}
		if end, ok := endOf(e); ok {
			w.end = &end
		}
	}
}

// wholeEnd puts the result into the end that was found.
func (w *Writer) wholeEnd() error {
	if w.end == nil {
		return nil
	}
	whole, err := w.end.withResult(eventsOf(w.f))
	w.end = &whole
	return err
}

// Append writes one event as one line, after what was streamed before it. The
// payload is one of this package's structs. Checkpoints and the terminal events
// have their own methods and are refused here.
func (w *Writer) Append(t thread.EventType, payload any) error {
	if t == thread.EventCheckpoint || terminal(t) {
		return fmt.Errorf("event %s is written by Checkpoint or Finish", t)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished {
		return fmt.Errorf("event %s: %w", t, ErrEnded)
	}
	out, whole := payload.(CognitionOut)
	if whole {
		w.drop(out.Turn)
	}
	if err := w.flush(); err != nil {
		return err
	}
	at := w.offset
	if err := w.write(t, payload); err != nil {
		return err
	}
	if whole {
		w.answer.add(answerPart{seq: w.seq, offset: at, length: w.offset - at - 1}, out.StopReason)
	}
	return nil
}

// Delta records a piece of an answer. Pieces of one kind that arrive together
// become one token_delta event; an event appended later comes after them. An
// error of a write in the background is returned by the next call.
func (w *Writer) Delta(turn int, d llm.Delta) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished {
		return fmt.Errorf("streamed text: %w", ErrEnded)
	}
	p := &w.pending
	// The name of a tool stands for itself and is never joined to another. Counts
	// of the provider join what comes next.
	if (p.due != nil || p.text.Len() > 0) && (p.turn != turn || p.kind != "") && (p.turn != turn || p.kind != d.Type || d.Type == llm.ToolUseBlock && d.Text != "") {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if w.err != nil {
		return w.err
	}
	if turn != w.streaming {
		w.streaming, w.streamed = turn, 0
	}
	p.turn, p.kind = turn, d.Type
	if w.streamed += len(d.Text); w.streamed <= maxStreamed {
		p.text.WriteString(d.Text)
	} else if err := w.hide(len(d.Text)); err != nil {
		return err
	}
	p.hidden += d.Hidden
	if d.Usage != nil {
		p.usage = d.Usage
	}
	if p.text.Len() >= batchBytes {
		return w.flushBut(w.begun())
	}
	if p.due == nil {
		p.due = time.AfterFunc(batchDelay, w.flushDue)
	}
	return nil
}

// hide counts text that is not written as it is streamed. The bytes before it that may
// be the beginning of a secret are not written either: their rest will not be seen.
func (w *Writer) hide(length int) error {
	p := &w.pending
	if p.text.Len() > 0 {
		if err := w.flushBut(w.begun()); err != nil {
			return err
		}
		p.hidden += p.text.Len()
		p.text.Reset()
	}
	p.hidden += length
	return nil
}

// flushDue runs when a batch has waited long enough. Its error stays in w.err.
func (w *Writer) flushDue() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.flushBut(w.begun())
}

// begun is how much of the pending text may be the beginning of a secret, which is
// hidden as a whole or not at all.
func (w *Writer) begun() int {
	if w.mask == nil {
		return 0
	}
	return w.mask.Begun(w.pending.text.String())
}

// drop forgets what is pending of an answer that is here as a whole. Its text is not:
// those who read along have begun to read it.
func (w *Writer) drop(turn int) {
	p := &w.pending
	if p.due == nil || p.turn != turn || p.kind == llm.TextBlock || p.kind == llm.ReasoningBlock {
		return
	}
	p.due.Stop()
	p.due = nil
	p.text.Reset()
	p.hidden, p.usage = 0, nil
}

// flush writes the pending text.
func (w *Writer) flush() error { return w.flushBut(0) }

// flushBut writes the pending text but its last bytes, which wait for more.
func (w *Writer) flushBut(last int) error {
	p := &w.pending
	if p.due != nil {
		p.due.Stop()
		p.due = nil
	}
	text := p.text.String()
	text, rest := text[:len(text)-last], text[len(text)-last:]
	if w.err != nil || text == "" && p.hidden == 0 && p.usage == nil {
		return w.err
	}
	d := TokenDelta{Turn: p.turn, Type: p.kind, Text: text, Bytes: p.hidden, Usage: p.usage}
	p.text.Reset()
	p.text.WriteString(rest)
	p.hidden, p.usage = 0, nil
	return w.write(thread.EventTokenDelta, d)
}

// write appends one line with one write(2).
func (w *Writer) write(t thread.EventType, payload any) error {
	if w.err != nil {
		return w.err
	}
	plain, err := encode(payload)
	if err != nil {
		return fmt.Errorf("payload of %s: %w", t, err)
	}
	if w.mask != nil {
		plain = w.mask.MaskJSON(plain)
	}
	at := w.now()
	line, err := encodeLine(stamp(at), w.id, w.seq+1, t, plain)
	if err != nil {
		return err
	}
	if _, err := w.f.Write(line); err != nil {
		w.err = fmt.Errorf("write transcript: %w", err)
		return w.err
	}
	w.hash.Write(line) // never returns an error
	w.offset += int64(len(line))
	w.seq++
	w.checked = t == thread.EventCheckpoint
	if w.mask != nil {
		payload = nil
	}
	w.live.add(thread.Event{Timestamp: at, ThreadID: w.id, Seq: w.seq, Type: t, Payload: plain}, payload)
	return nil
}

// Close writes what is pending and closes the file. Closing again is harmless.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(w.err, os.ErrClosed) {
		return nil
	}
	err := errors.Join(w.flush(), w.awaitSync())
	w.err = fmt.Errorf("transcript: %w", os.ErrClosed)
	return errors.Join(err, w.f.Close())
}
