package transcript

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// LastOutcome returns how the thread decided to end and what it had cost, from
// its terminal event; nil when it has none. A result that the event only names the
// answers of is read from them. Damage elsewhere in the file does
// not hinder it, so that a thread with a damaged transcript can still be
// settled. The error of a missing file wraps fs.ErrNotExist.
func LastOutcome(from records.Source) (*thread.Outcome, *thread.Cost, error) {
	var last *Ended
	for e, err := range Events(from) {
		if err != nil && !isLineError(err) && !isTorn(err) {
			return nil, nil, err
		}
		if ended, ok := endOf(e); ok {
			last = &ended
		}
	}
	if last == nil {
		return nil, nil, nil
	}
	whole, err := last.withResult(Events(from))
	if err != nil {
		return nil, nil, err
	}
	return &whole.Outcome, &whole.Cost, nil
}

// endOf reads a terminal event. One that contradicts itself is none.
func endOf(e thread.Event) (Ended, bool) {
	if !terminal(e.Type) {
		return Ended{}, false
	}
	ended, err := Decode[Ended](e)
	if err != nil {
		return Ended{}, false
	}
	t, ok := terminalEvent(ended.Outcome)
	return ended, ok && t == e.Type
}

// LastEvents returns the newest n events, oldest first, without streamed pieces and
// checkpoints. Lines that are no events are left out.
func LastEvents(from records.Source, n int) ([]thread.Event, error) {
	f, err := from.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	end, err := completeLines(f)
	if err != nil {
		return nil, err
	}
	var events []thread.Event
	for p, err := range backward(f, end) {
		if err != nil && !errors.Is(err, errLineTooLong) {
			return nil, err
		}
		e, err := decodeLine(p.line)
		if err != nil || e.Type == thread.EventTokenDelta || e.Type == thread.EventCheckpoint {
			continue
		}
		if events = append(events, e); len(events) == n {
			break
		}
	}
	slices.Reverse(events)
	return events, nil
}

const (
	// lastWordsBytes is how much of what the model wrote Last returns.
	lastWordsBytes = 240
	// lastLines bounds how far back Last looks for words.
	lastLines = 200
)

// Newest is what was said and done last in a thread.
type Newest struct {
	Event thread.EventType // the newest that is not a checkpoint
	Tool  string           // called since the words, or with them; may be empty
	Text  string           // last words of the model, those it is writing now included
}

// Last returns what is newest in a transcript. It reads from the end of the file
// only, so that a running thread can be looked at often.
func Last(from records.Source) (Newest, error) {
	f, err := from.Open()
	if err != nil {
		return Newest{}, err
	}
	defer func() { _ = f.Close() }()
	end, err := completeLines(f)
	if err != nil {
		return Newest{}, err
	}

	var newest thread.EventType
	var words lastWords
	seen := 0
	for p, err := range backward(f, end) {
		if err != nil && !errors.Is(err, errLineTooLong) {
			return Newest{}, err
		}
		seen++
		e, err := decodeLine(p.line)
		if err == nil && newest == "" && e.Type != thread.EventCheckpoint {
			newest = e.Type
		}
		if err == nil && words.add(e) || seen == lastLines {
			break
		}
	}
	return Newest{newest, words.tool, words.text()}, nil
}

// lastWords gathers words from events that come newest first.
type lastWords struct {
	parts []string // newest first
	size  int
	turn  int // of the streamed text gathered so far
	tool  string
}

// add takes an event and reports whether there are enough words.
func (l *lastWords) add(e thread.Event) bool {
	switch e.Type {
	case thread.EventTokenDelta:
		d, err := Decode[TokenDelta](e)
		if err != nil || d.Type != llm.TextBlock {
			return false
		}
		if l.size > 0 && d.Turn != l.turn {
			return true
		}
		l.turn = d.Turn
		l.take(d.Text)
		return l.size >= lastWordsBytes
	case thread.EventToolCallStart:
		if call, err := Decode[ToolCallStart](e); err == nil && l.size == 0 {
			l.tool = cmp.Or(l.tool, call.Tool)
		}
		return false
	case thread.EventCognitionOut:
		if l.size > 0 {
			return true
		}
		out, err := Decode[CognitionOut](e)
		if err != nil {
			return false
		}
		for i := len(out.Blocks) - 1; i >= 0; i-- {
			switch b := out.Blocks[i]; b.Type {
			case llm.TextBlock:
				l.take(b.Text)
			case llm.ToolUseBlock:
				l.tool = cmp.Or(l.tool, b.ToolName)
			}
		}
		return l.size > 0
	default:
		return false
	}
}

func (l *lastWords) take(text string) {
	l.parts = append(l.parts, text)
	l.size += len(text)
}

func (l *lastWords) text() string {
	var b strings.Builder
	for i := len(l.parts) - 1; i >= 0; i-- {
		b.WriteString(l.parts[i])
	}
	text := strings.TrimSpace(b.String())
	if len(text) <= lastWordsBytes {
		return text
	}
	return "…" + item.End(text, lastWordsBytes)
}
