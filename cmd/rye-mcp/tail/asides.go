package tail

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// started tells what runs, under which bounds.
func started(p transcript.ThreadStarted) []Piece {
	pieces := line(Head, fmt.Sprintf("● %s, model %s, at most %s and %d turns", p.Directive, p.Model, p.Limits.Spend, p.Limits.Turns))
	for _, warning := range p.Warnings {
		pieces = append(pieces, line(Head, "Warning: "+warning)...)
	}
	return pieces
}

// given tells in a line each what the model was told. Results of calls are those of an
// earlier thread, which has told of them, but for those that it did not live to see.
func given(p transcript.CognitionIn) (pieces []Piece) {
	for _, block := range p.Blocks {
		switch {
		case block.Type == llm.TextBlock:
			pieces = append(pieces, line(Prompt, "« "+folded(block.Text))...)
		case transcript.IsUnanswered(block):
			pieces = append(pieces, line(Failure, failure("a call", "", block.Text))...)
		}
	}
	return pieces
}

// folded is the line of a text that says the most, and how many there are. A prompt begins
// with the tags around it.
func folded(text string) string {
	text = strings.TrimSpace(text)
	first, all := "", 0
	for line := range strings.Lines(text) {
		all++
		if line = strings.TrimSpace(line); first == "" && line != "" && !strings.HasPrefix(line, "<") {
			first = firstLine(line)
		}
	}
	if first == "" {
		first = firstLine(text)
	}
	if all > 1 {
		return fmt.Sprintf("%s (%d lines)", first, all)
	}
	return first
}

// messageText tells who told the thread what while it worked.
func messageText(p transcript.Message) string {
	if p.Kind == thread.Happened {
		return "« " + firstLine(p.Text())
	}
	from := p.From.Name
	if from == "" {
		from = "the " + string(p.From.Kind)
	}
	return fmt.Sprintf("« %s from %s: %s", p.Kind, plain.Line(from), firstLine(p.Text()))
}

// asked is a question, with its answers and how it is answered.
func asked(p transcript.QuestionAsked, by thread.ID) []Piece {
	var options []string
	for _, o := range p.Options {
		options = append(options, string(o))
	}
	pieces := line(Question, "? "+folded(p.Text))
	pieces = append(pieces, line(Question, fmt.Sprintf("? answers: %s; else %s at %s", strings.Join(options, ", "), p.Default, p.DeadlineAt))...)
	return append(pieces, line(Question, fmt.Sprintf("? to answer: rye-mcp threads approve %s", by))...)
}

// answered tells who has decided what.
func answered(p transcript.QuestionAnswered) []Piece {
	var limits strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.Limits)) {
		fmt.Fprintf(&limits, " %s=%v", name, p.Limits[name])
	}
	return line(Answer, fmt.Sprintf("✓ %s%s, by %s after %s", p.Decision, limits.String(), p.By, seconds(p.WaitedMS)))
}

func fired(p transcript.HookFired) []Piece {
	if p.Error != "" {
		return line(Failure, fmt.Sprintf("✗ hook %s at %s: %s", plain.Line(p.HookID), p.Event, firstLine(p.Error)))
	}
	return line(Note, fmt.Sprintf("· hook %s at %s: %s", plain.Line(p.HookID), p.Event, firstLine(p.Result)))
}

func continues(p transcript.ThreadContinued) []Piece {
	if p.Via == thread.ViaFork {
		return line(Head, fmt.Sprintf("● a copy of thread %s (%s)", p.PreviousThreadID, plural(p.Messages, "message")))
	}
	return line(Head, fmt.Sprintf("● continues thread %s (%s; %s taken over)", p.PreviousThreadID, p.Via, plural(p.Messages, "message")))
}

// handedOver shows who continues, and what went wrong before.
func handedOver(p transcript.ThreadHandoff) (pieces []Piece) {
	for _, warning := range p.Outcome.Warnings {
		pieces = append(pieces, line(Warning, "Warning: "+warning)...)
	}
	return append(pieces, continued(p.NewThreadID)...)
}

func continued(by thread.ID) []Piece { return line(Continued, "⇒ continued by thread "+string(by)) }

// ended tells how a thread ended.
func ended(p transcript.Ended) []Piece {
	kind := Ended
	if p.Outcome.State != thread.Completed {
		kind = Failed
	}
	text := fmt.Sprintf("%s after %s, %s", p.Outcome.State, plural(p.Cost.Turns, "turn"), p.Cost.Spend)
	if p.Outcome.Error != nil {
		text += ": " + p.Outcome.Error.Message
	}
	pieces := line(kind, text)
	if due := p.Outcome.Retry; due != nil {
		pieces = append(pieces, line(Retry, fmt.Sprintf("… failed, and tried again at %s (attempt %d of %d)",
			due.At.UTC().Format(time.RFC3339), due.Attempt, due.Attempts))...)
	}
	if len(p.Outcome.Outputs) > 0 {
		if outputs, err := json.Marshal(p.Outcome.Outputs); err == nil {
			pieces = append(pieces, line(kind, "outputs "+firstLine(string(outputs)))...)
		}
	}
	return pieces
}

// Size is a number of bytes for people.
func Size(bytes int) string {
	const k = 1024
	switch {
	case bytes < k:
		return fmt.Sprintf("%d B", bytes)
	case bytes < k*k:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/k)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(k*k))
}

// Count is a number for people: 950, 12.3k, 1.2M.
func Count(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 999_950:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

func seconds(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
