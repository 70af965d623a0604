package transcript

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Checkpoint signs everything up to the end of a turn and returns when it is
// on disk. When nothing was written since the last checkpoint it does nothing.
func (w *Writer) Checkpoint(turn int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.checkpoint(turn)
}

// BeginCheckpoint is Checkpoint that does not wait for the disk: [Writer.Synced] does,
// and more may be written meanwhile.
func (w *Writer) BeginCheckpoint(turn int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.sign(turn); err != nil {
		return err
	}
	done := make(chan error, 1)
	w.syncing = done
	go func() { done <- w.f.Sync() }()
	return nil
}

// Synced waits until the last checkpoint is on disk.
func (w *Writer) Synced() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.awaitSync()
}

func (w *Writer) checkpoint(turn int) error {
	if err := w.sign(turn); err != nil {
		return err
	}
	return w.sync()
}

// sign writes a checkpoint, unless the last line is one. The one before it is on disk
// when it returns.
func (w *Writer) sign(turn int) error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.awaitSync(); err != nil || w.checked {
		return err
	}
	w.turn = max(w.turn, turn)
	if err := w.write(thread.EventCheckpoint, w.newCheckpoint(w.offset)); err != nil {
		return err
	}
	w.checkpoints++
	return nil
}

// newCheckpoint is one whose line begins at offset and vouches for all bytes so
// far.
func (w *Writer) newCheckpoint(offset int64) Checkpoint {
	c := Checkpoint{Turn: w.turn, ByteOffset: offset, Hash: w.sum(), TS: stamp(w.now())}
	if w.signer != nil {
		c.Sig, c.FP = w.signer.Sign(c.Hash), w.signer.Fingerprint()
	}
	return c
}

func (w *Writer) sync() error { return w.syncEnded(w.f.Sync()) }

// awaitSync waits for the checkpoint that is on its way to disk.
func (w *Writer) awaitSync() error {
	if w.syncing == nil {
		return w.err
	}
	err := <-w.syncing
	w.syncing = nil
	return w.syncEnded(err)
}

func (w *Writer) syncEnded(err error) error {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("sync transcript: %w", err)
	}
	return w.err
}

// sum is the hash of all bytes so far.
func (w *Writer) sum() string { return hex.EncodeToString(w.hash.Sum(nil)) }

// Finish records how the thread ended, signs the last checkpoint and returns
// what fixes the transcript's length. It may be repeated after a crash at any
// point: a terminal event that is there already stands, whatever o says.
func (w *Writer) Finish(o thread.Outcome, cost thread.Cost) (thread.TranscriptHead, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.mend(); err != nil {
		return thread.TranscriptHead{}, err
	}
	if err := w.flush(); err != nil {
		return thread.TranscriptHead{}, err
	}
	if w.end == nil {
		t, ok := terminalEvent(o)
		if !ok {
			return thread.TranscriptHead{}, fmt.Errorf("a thread does not finish as %q (handed over: %t)", o.State, o.Handoff != nil)
		}
		end := Ended{Outcome: o, Cost: cost}
		if err := w.write(t, w.stored(end).payload(t)); err != nil {
			return thread.TranscriptHead{}, err
		}
		w.end = &end
	}
	if err := w.checkpoint(cost.Turns); err != nil {
		return thread.TranscriptHead{}, err
	}
	w.finished = true
	return thread.TranscriptHead{Checkpoints: w.checkpoints, Bytes: w.offset, Hash: w.sum()}, nil
}

// mend cuts off what a failed write left of its line and forgets the failure,
// which is why the thread ends.
func (w *Writer) mend() error {
	_ = w.awaitSync() // its failure is in w.err
	if w.err == nil || errors.Is(w.err, os.ErrClosed) {
		return w.err
	}
	if err := w.f.Truncate(w.offset); err != nil {
		return errors.Join(w.err, err)
	}
	w.err = nil
	return nil
}

// Decided is how the thread has ended according to its terminal event; nil
// before there is one.
func (w *Writer) Decided() *Ended {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end
}

// terminalEvent is the event that ends a thread with outcome o. An outcome that
// contradicts itself has none: only a thread that is continued has handed over,
// and it says to whom.
func terminalEvent(o thread.Outcome) (thread.EventType, bool) {
	if (o.State == thread.Continued) != (o.Handoff != nil) {
		return "", false
	}
	switch o.State {
	case thread.Completed:
		return thread.EventThreadCompleted, true
	case thread.Error:
		return thread.EventThreadError, true
	case thread.Cancelled:
		return thread.EventThreadCancelled, true
	case thread.Continued:
		return thread.EventThreadHandoff, o.Handoff.NewThreadID != ""
	default:
		return "", false
	}
}

// terminal reports whether t ends a thread.
func terminal(t thread.EventType) bool {
	switch t {
	case thread.EventThreadCompleted, thread.EventThreadError, thread.EventThreadCancelled, thread.EventThreadHandoff:
		return true
	default:
		return false
	}
}
