package transcript

import (
	"errors"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Seed begins the transcript of a thread that goes on with the conversation of
// another with what it was given of that, signs it and returns when it is on disk.
// [Messages] gives back exactly these messages; none of their calls may be
// unanswered. The bytes of their images must lie with the artifacts of the new
// thread by then. It is an error when the transcript has begun.
func (w *Writer) Seed(c ThreadContinued, messages []llm.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seq > 0 {
		return errors.New("the transcript has begun")
	}
	c.Messages = len(messages)
	if err := w.write(thread.EventThreadContinued, c); err != nil {
		return err
	}
	for _, m := range messages {
		if err := w.write(thread.EventCognitionIn, CognitionIn{Role: m.Role, Blocks: m.Blocks}); err != nil {
			return err
		}
	}
	return w.checkpoint(0)
}

// CountedBefore is what was counted of the messages that a thread was given; nil: nothing.
func CountedBefore(from records.Source) *Count {
	for e, err := range Events(from) {
		if err != nil || e.Type != thread.EventThreadContinued {
			return nil
		}
		p, err := Decode[ThreadContinued](e)
		if err != nil {
			return nil
		}
		return p.Counted
	}
	return nil
}
