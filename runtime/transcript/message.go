package transcript

import (
	"errors"
	"io/fs"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// MessageIDs are the messages of its queue that stand in a transcript, in order: the
// thread has read them, whatever the registry says. Damaged lines are passed over. A
// missing transcript has none.
func MessageIDs(from records.Source) (ids []string, err error) {
	for e, err := range Events(from) {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil && !isLineError(err) && !isTorn(err):
			return nil, err
		case err != nil || e.Type != thread.EventMessage:
			continue
		}
		if m, err := Decode[Message](e); err == nil && m.MessageID != "" {
			ids = append(ids, m.MessageID)
		}
	}
	return ids, nil
}
