package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/tail"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// streamer writes events for a person: the model's words to out, everything
// else to err.
type streamer struct {
	reader tail.Reader
	out    io.Writer
	err    display
	open   bool // the last line of out is not ended
	// leaves says what is not written.
	leaves func(tail.Kind) bool
}

// newAnswerStreamer is for who waits for the answer of a thread that the same command
// has started: what the command tells itself, or was told, is left out.
func newAnswerStreamer(sys System, opts options) *streamer {
	return &streamer{out: sys.Stdout, err: newDisplayOn(sys, sys.Stderr, opts), leaves: besideAnswer}
}

// newLookStreamer is for who looks at a thread.
func newLookStreamer(sys System, opts options) *streamer {
	return &streamer{out: sys.Stdout, err: newDisplay(sys, opts), leaves: func(tail.Kind) bool { return false }}
}

// besideAnswer are the kinds that such a command tells itself, or nobody who waits asks for.
func besideAnswer(k tail.Kind) bool {
	return slices.Contains([]tail.Kind{tail.Head, tail.Prompt, tail.Result, tail.Turn, tail.Note, tail.Trouble, tail.Ended, tail.Failed}, k)
}

func (s *streamer) see(e thread.Event) error {
	for _, p := range s.reader.Read(e) {
		if err := s.write(p); err != nil {
			return err
		}
	}
	if ends(e.Type) {
		return s.endLine()
	}
	return nil
}

// ends reports whether nothing follows an event on its line.
func ends(t thread.EventType) bool {
	switch t {
	case thread.EventCognitionOut, thread.EventThreadCompleted, thread.EventThreadError, thread.EventThreadCancelled, thread.EventThreadHandoff:
		return true
	}
	return false
}

func (s *streamer) write(p tail.Piece) error {
	if p.Kind == tail.Words {
		s.open = p.Open
		_, err := io.WriteString(s.out, p.Text)
		return err
	}
	if s.leaves(p.Kind) {
		return nil
	}
	if err := s.endLine(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.err.out, s.err.paint(kindColor(p.Kind), p.Text))
	return err
}

func (s *streamer) endLine() error {
	if !s.open {
		return nil
	}
	s.open = false
	_, err := io.WriteString(s.out, "\n")
	return err
}

// kindColor is the colour of what is no word of the model.
func kindColor(k tail.Kind) color {
	switch k {
	case tail.Call, tail.Child, tail.Continued:
		return cyan
	case tail.Failure, tail.Failed, tail.Trouble:
		return red
	case tail.Question, tail.Warning, tail.Retry:
		return yellow
	case tail.Answer, tail.Ended:
		return green
	case tail.Prompt, tail.Result, tail.Turn, tail.Note, tail.Head:
		return dim
	case tail.Words, tail.Told:
		return uncolored
	}
	return uncolored
}
