package transcript

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The marks around what is said in a message, for which the text itself has none.
const (
	TextBegins = "<message>\n"
	TextEnds   = "\n</message>"
)

// Text is what was said, without what the model is told of it; of an event that is all.
func (m Message) Text() string {
	if len(m.Blocks) == 0 {
		return ""
	}
	text := m.Blocks[0].Text
	if _, said, found := strings.Cut(text, TextBegins); found {
		return strings.TrimSuffix(said, TextEnds)
	}
	return text
}

// Children are the threads that a thread has started by calls of its model and of whose
// end its transcript does not tell, after those that it was given to know of. Damaged
// lines are passed over.
func Children(from records.Source, given []thread.ID) ([]thread.ID, error) {
	children := slices.Clone(given)
	ended := func(ids ...thread.ID) {
		children = slices.DeleteFunc(children, func(id thread.ID) bool { return slices.Contains(ids, id) })
	}
	for e, err := range Events(from) {
		if err != nil && !isLineError(err) && !isTorn(err) {
			return nil, err
		}
		if err != nil {
			continue
		}
		switch e.Type {
		case thread.EventChildThreadStarted:
			if c, err := Decode[ChildStarted](e); err == nil && c.CallID != "" {
				children = append(children, c.ThreadID)
			}
		case thread.EventToolCallResult:
			if result, err := Decode[ToolCallResult](e); err == nil {
				ended(result.Ended...)
			}
		case thread.EventMessage:
			if m, err := Decode[Message](e); err == nil {
				ended(m.Ended)
			}
		}
	}
	return children, nil
}

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
