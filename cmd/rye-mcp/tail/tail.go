// Package tail tells people what threads do: each event of a transcript as a few lines
// that a terminal can show. It shows what models, tools and files said, and does not obey it.
package tail

import (
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// Kind says what a piece is about.
type Kind int

// The kinds of piece.
const (
	Words     Kind = iota // the model's
	Head                  // what runs
	Prompt                // a message of the conversation to the model
	Told                  // what the thread was told while it worked
	Call                  // of a tool
	Result                // of a call that worked
	Failure               // of a call
	Child                 // a thread that was started
	Question              // to whoever answers
	Answer                // to a question
	Turn                  // what a turn took and cost
	Trouble               // a call of the model that failed
	Retry                 // of a call of the model
	Note                  // what else there is to say
	Warning               // of a handoff
	Continued             // by another thread
	Ended                 // as it should
	Failed                // the end of a thread that was cancelled, or went wrong
)

// Piece is something to show: a line, or of Words any text.
type Piece struct {
	Kind Kind
	Text string
	Open bool // of Words: more may follow in the same line; any other piece begins its own
}

// Reader tells the events of a thread, and of those that continue it, in their order.
// The zero value is ready to use. Answers are told as they are written; those that were
// not streamed, or not seen while they were, when they are there.
type Reader struct {
	calls  map[string]string // what the open calls are about, by their ids
	spend  thread.Micros     // of what was seen
	whole  bool              // everything was seen
	writes bool              // some text of the answer that is written now was seen
	thinks bool              // that was said of this answer
}

// Read is what an event tells a person; many tell nothing. Damaged ones are left out.
func (r *Reader) Read(e thread.Event) []Piece {
	if e.Seq == 1 && !r.whole {
		r.whole, r.spend = true, 0
	}
	switch e.Type {
	case thread.EventTokenDelta:
		return decoded(e, r.delta)
	case thread.EventCognitionOut:
		return decoded(e, r.answer)
	case thread.EventToolCallStart:
		return decoded(e, r.call)
	case thread.EventToolCallResult:
		return decoded(e, r.result)
	case thread.EventThreadStarted:
		return decoded(e, started)
	case thread.EventCognitionIn:
		return decoded(e, given)
	case thread.EventMessage:
		return decoded(e, func(p transcript.Message) []Piece { return line(Told, messageText(p)) })
	case thread.EventQuestionAsked:
		return decoded(e, func(p transcript.QuestionAsked) []Piece { return asked(p, e.ThreadID) })
	case thread.EventQuestionAnswered:
		return decoded(e, answered)
	case thread.EventThreadCompleted, thread.EventThreadError, thread.EventThreadCancelled:
		r.writes, r.thinks = false, false
		return decoded(e, ended)
	}
	return r.aside(e)
}

// aside are the events that take a line.
func (r *Reader) aside(e thread.Event) []Piece {
	switch e.Type {
	case thread.EventChildThreadStarted:
		return decoded(e, func(p transcript.ChildStarted) []Piece { return line(Child, "↳ thread "+string(p.ThreadID)) })
	case thread.EventThreadContinued:
		return decoded(e, continues)
	case thread.EventThreadHandoff:
		r.writes, r.thinks = false, false
		return decoded(e, handedOver)
	case thread.EventThreadResumed:
		return decoded(e, func(p transcript.ThreadResumed) []Piece { return continued(p.NewThreadID) })
	case thread.EventErrorClassified:
		return decoded(e, func(p transcript.ErrorClassified) []Piece {
			return line(Trouble, fmt.Sprintf("✗ model: %s: %s", p.Category, firstLine(p.Message)))
		})
	case thread.EventRetry:
		r.writes, r.thinks = false, false // it begins again
		return decoded(e, func(p transcript.Retry) []Piece {
			return line(Retry, fmt.Sprintf("… %s, trying again in %s", firstLine(p.Reason), seconds(p.DelayMS)))
		})
	case thread.EventLimitExceeded:
		return decoded(e, func(p transcript.LimitExceeded) []Piece {
			return line(Note, "· "+p.Reached().Error())
		})
	case thread.EventHookFired:
		return decoded(e, fired)
	}
	return nil
}

// decoded renders the payload of an event.
func decoded[T any](e thread.Event, render func(T) []Piece) []Piece {
	payload, err := transcript.Decode[T](e)
	if err != nil {
		return nil // verifying the transcript is where damage is named
	}
	return render(payload)
}

// line is a piece of one line, or none when there is nothing to say.
func line(kind Kind, text string) []Piece {
	if text = plain.Line(text); text == "" {
		return nil
	}
	return []Piece{{Kind: kind, Text: text}}
}

// delta is what came of an answer that is being written.
func (r *Reader) delta(d transcript.TokenDelta) []Piece {
	if d.Type == llm.ReasoningBlock && !r.thinks {
		r.thinks = true
		return line(Note, "· thinks")
	}
	if d.Type != llm.TextBlock || d.Text == "" {
		return nil
	}
	r.writes = true
	return []Piece{{Kind: Words, Text: plain.Lines(d.Text), Open: !strings.HasSuffix(d.Text, "\n")}}
}

// answer is a whole answer, of which what was streamed is not told again.
func (r *Reader) answer(p transcript.CognitionOut) (pieces []Piece) {
	for _, block := range p.Blocks {
		text := strings.TrimSpace(block.Text)
		if block.Type == llm.TextBlock && text != "" && !r.writes {
			pieces = append(pieces, Piece{Kind: Words, Text: plain.Lines(text) + "\n"})
		}
	}
	r.writes, r.thinks = false, false
	r.spend = r.spend.Plus(p.Spend)
	return append(pieces, line(Turn, r.turn(p))...)
}

// turn tells what a turn took.
func (r *Reader) turn(p transcript.CognitionOut) string {
	if p.Turn == 0 {
		return ""
	}
	u := p.Usage
	in := thread.Sum(u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens)
	text := fmt.Sprintf("· turn %d: %s tokens in, %s out, %s", p.Turn, Count(in), Count(u.OutputTokens), p.Spend)
	if r.whole && p.Turn > 1 {
		text += fmt.Sprintf("; %s so far", r.spend)
	}
	return text
}
