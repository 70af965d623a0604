package transcript

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Addition is an event that comes after the end.
type Addition struct {
	Type    thread.EventType
	Payload any // as for [Writer.Append]
}

// Add appends what happened after the end of the thread, and returns when it is
// on disk. The end may have been recorded by a writer before this one. The events
// and a checkpoint that signs them are one write, so that nothing unsigned ever
// follows the end.
func (w *Writer) Add(additions ...Addition) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return w.err
	case !w.finished && (w.end == nil || !w.checked):
		return errors.New("the thread has not ended")
	case len(additions) == 0:
		return nil
	}
	var lines []byte
	for i, a := range additions {
		if a.Type == thread.EventCheckpoint || terminal(a.Type) {
			return fmt.Errorf("event %s is written by Checkpoint or Finish", a.Type)
		}
		line, err := w.additionLine(w.seq+1+int64(i), a)
		if err != nil {
			return err
		}
		lines = append(lines, line...)
	}
	seq := w.seq + int64(len(additions)) + 1
	w.hash.Write(lines) // never returns an error
	signed, err := w.additionLine(seq, Addition{thread.EventCheckpoint, w.newCheckpoint(w.offset + int64(len(lines)))})
	if err != nil {
		return err
	}
	w.hash.Write(signed)
	lines = append(lines, signed...)
	if _, err := w.f.Write(lines); err != nil {
		w.err = fmt.Errorf("write transcript: %w", err)
		return errors.Join(w.err, w.f.Truncate(w.offset))
	}
	w.offset += int64(len(lines))
	w.seq = seq
	w.checkpoints++
	return w.sync()
}

func (w *Writer) additionLine(seq int64, a Addition) ([]byte, error) {
	payload, err := encode(a.Payload)
	if err != nil {
		return nil, fmt.Errorf("payload of %s: %w", a.Type, err)
	}
	return encodeLine(stamp(w.now()), w.id, seq, a.Type, payload)
}

// previewBytes bounds what an event shows of a person's message.
const previewBytes = 200

func preview(message string) string {
	return item.Clip(strings.TrimSpace(message), previewBytes)
}
