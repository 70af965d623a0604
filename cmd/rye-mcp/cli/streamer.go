package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// streamer writes events for a person: the model's words to out, everything
// else to err.
type streamer struct {
	out, err io.Writer
	open     bool // the last line of out is not ended
	whole    bool // answers are written when they are there, and not as they come
}

func (s *streamer) see(e thread.Event) error {
	switch e.Type {
	case thread.EventTokenDelta:
		if s.whole {
			return nil
		}
		if d, err := transcript.Decode[transcript.TokenDelta](e); err == nil && d.Type == llm.TextBlock && d.Text != "" {
			s.open = !strings.HasSuffix(d.Text, "\n")
			_, err = io.WriteString(s.out, manyLines(d.Text))
			return err
		}
	case thread.EventCognitionIn:
		if s.whole {
			return s.seeGiven(e)
		}
	case thread.EventCognitionOut:
		if s.whole {
			return s.seeAnswer(e)
		}
		return s.endLine()
	case thread.EventThreadCompleted, thread.EventThreadError, thread.EventThreadCancelled:
		if s.whole {
			return note(s, e, endLineOf)
		}
		return s.endLine()
	case thread.EventMessage:
		return note(s, e, messageLine)
	case thread.EventToolCallStart:
		return note(s, e, callLine)
	case thread.EventToolCallResult:
		return note(s, e, failureLine)
	case thread.EventChildThreadStarted:
		return note(s, e, func(p transcript.ChildStarted) string { return "↳ thread " + string(p.ThreadID) })
	case thread.EventThreadHandoff:
		return s.seeHandoff(e)
	case thread.EventThreadResumed:
		return note(s, e, func(p transcript.ThreadResumed) string { return continuedBy(p.NewThreadID) })
	case thread.EventRetry:
		return note(s, e, func(p transcript.Retry) string {
			return fmt.Sprintf("… %s, trying again in %.1f s", p.Reason, float64(p.DelayMS)/1000)
		})
	}
	return nil
}

// seeHandoff shows who continues, and what went wrong before.
func (s *streamer) seeHandoff(e thread.Event) error {
	ended, err := transcript.Decode[transcript.ThreadHandoff](e)
	if err != nil {
		return nil //nolint:nilerr // a damaged event is not worth ending the stream for
	}
	for _, warning := range ended.Outcome.Warnings {
		if err := s.aside("Warning: " + warning); err != nil {
			return err
		}
	}
	return s.aside(continuedBy(ended.NewThreadID))
}

func continuedBy(by thread.ID) string { return "⇒ continued by thread " + string(by) }

func (s *streamer) endLine() error {
	if !s.open {
		return nil
	}
	s.open = false
	_, err := io.WriteString(s.out, "\n")
	return err
}

func note[T any](s *streamer, e thread.Event, render func(T) string) error {
	payload, err := transcript.Decode[T](e)
	if err != nil {
		return nil //nolint:nilerr // a damaged event is not worth ending the stream for
	}
	return s.aside(render(payload))
}

// seeAnswer writes what the model wrote in an answer.
func (s *streamer) seeAnswer(e thread.Event) error {
	answer, err := transcript.Decode[transcript.CognitionOut](e)
	if err != nil {
		return nil //nolint:nilerr // a damaged event is not worth ending the stream for
	}
	for _, block := range answer.Blocks {
		if text := strings.TrimSpace(block.Text); block.Type == llm.TextBlock && text != "" {
			if _, err := fmt.Fprintln(s.out, manyLines(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// seeGiven tells in a line each what the model was told, and which calls failed.
func (s *streamer) seeGiven(e thread.Event) error {
	given, err := transcript.Decode[transcript.CognitionIn](e)
	if err != nil {
		return nil //nolint:nilerr // a damaged event is not worth ending the stream for
	}
	for _, block := range given.Blocks {
		line := ""
		switch {
		case block.Type == llm.TextBlock:
			line = "« " + firstLine(block.Text)
		case block.Type == llm.ToolResultBlock && block.IsError:
			line = "✗ " + block.ToolName + ": " + firstLine(block.Text)
		}
		if err := s.aside(line); err != nil {
			return err
		}
	}
	return nil
}

// firstLine is the beginning of a text, for one line.
func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return shorten(oneLine(first), maxTold)
}

// endLineOf tells how a thread ended.
func endLineOf(p transcript.Ended) string {
	line := fmt.Sprintf("%s after %s, %s", p.Outcome.State, counted(p.Cost.Turns, "turn"), p.Cost.Spend)
	if p.Outcome.Error != nil {
		line += ": " + p.Outcome.Error.Message
	}
	return line
}

// messageLine tells who told the thread what while it worked.
func messageLine(p transcript.Message) string {
	if p.Kind == thread.Happened {
		return "« " + firstLine(p.Text())
	}
	from := p.From.Name
	if from == "" {
		from = "the " + string(p.From.Kind)
	}
	return fmt.Sprintf("« %s from %s: %s", p.Kind, from, firstLine(p.Text()))
}

// telling are the arguments that tell a person what a call is about, in the order
// in which they are looked for.
var telling = [...]string{"path", "command", "item_id", "query", "pattern", "operation", "thread_id", "name", "url"}

// maxTold is how many columns of an argument or a failure are shown.
const maxTold = 100

// callLine is a call of a tool, with what it is about.
func callLine(p transcript.ToolCallStart) string {
	var input map[string]any
	if json.Unmarshal(p.Input, &input) != nil {
		return "→ " + p.Tool
	}
	for _, name := range telling {
		if value, ok := input[name].(string); ok && value != "" {
			return "→ " + p.Tool + " " + shorten(oneLine(value), maxTold)
		}
	}
	return "→ " + p.Tool
}

// failureLine tells why a call failed; a call that worked has none.
func failureLine(p transcript.ToolCallResult) string {
	if !p.IsError {
		return ""
	}
	said := p.Text
	var failure struct{ Error string }
	if json.Unmarshal([]byte(p.Text), &failure) == nil && failure.Error != "" {
		said = failure.Error
	}
	return "✗ " + p.Tool + ": " + firstLine(said)
}

// aside says something on a line of its own, beside what the thread says.
func (s *streamer) aside(text string) error {
	if text == "" {
		return nil
	}
	if err := s.endLine(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.err, oneLine(text))
	return err
}
