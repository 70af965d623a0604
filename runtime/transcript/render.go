package transcript

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Render writes a transcript as Markdown for people: the conversation with its
// tool calls, retries, limits and end. Streamed pieces appear only where the
// whole answer is not there yet. Lines that cannot be read are named in place.
func Render(from records.Source, w io.Writer) error { return render(Events(from), w) }

func render(events iter.Seq2[thread.Event, error], w io.Writer) error {
	out := bufio.NewWriter(w)
	var live liveText
	titled, said := false, ""
	for e, err := range events {
		switch {
		case isLineError(err), isTorn(err):
			_, _ = fmt.Fprintf(out, "> %v\n\n", err)
			continue
		case err != nil:
			return err
		}
		if !titled {
			titled = true
			_, _ = fmt.Fprintf(out, "# %s\n\n", e.ThreadID)
		}
		live.add(e)
		_, _ = out.WriteString(eventText(e, func() string { return said }))
		if e.Type == thread.EventCognitionOut {
			said = saidIn(e)
		}
	}
	_, _ = out.WriteString(live.text())
	return out.Flush() // reports the first failed write above as well
}

// liveText is the text of an answer that is still being written.
type liveText struct {
	turn  int
	parts []string
}

func (l *liveText) add(e thread.Event) {
	if e.Type == thread.EventCognitionOut || e.Type == thread.EventRetry || e.Type == thread.EventMessage || terminal(e.Type) {
		l.parts = nil
		return
	}
	d, err := Decode[TokenDelta](e)
	if e.Type != thread.EventTokenDelta || err != nil || d.Type != llm.TextBlock {
		return
	}
	l.turn = d.Turn
	l.parts = append(l.parts, d.Text)
}

func (l *liveText) text() string {
	if len(l.parts) == 0 {
		return ""
	}
	return fmt.Sprintf("## Turn %d (being written)\n\n%s\n\n", l.turn, strings.Join(l.parts, ""))
}

// saidIn is what the model wrote in an answer, as Markdown.
func saidIn(e thread.Event) string {
	out, err := Decode[CognitionOut](e)
	if err != nil {
		return ""
	}
	return blocksText(out.Blocks)
}

// eventText is one event as Markdown; empty for those a reader does not need. Said
// is the answer of the model before it.
func eventText(e thread.Event, said func() string) string {
	switch e.Type {
	case thread.EventToolsOffered, thread.EventTokenDelta, thread.EventCognitionRequest, thread.EventCheckpoint, thread.EventCognitionReasoning, thread.EventToolCallStart:
		return "" // cognition_out, tool_call_result and capabilities.md say it all
	case thread.EventThreadStarted:
		return show(e, func(p ThreadStarted) string {
			return fmt.Sprintf("Directive `%s`, model `%s`, started %s.\n\n", p.Directive, p.Model, stamp(e.Timestamp))
		})
	case thread.EventSystemPrompt:
		return show(e, func(p SystemPrompt) string { return "## System\n\n" + p.Text + "\n\n" })
	case thread.EventCognitionIn:
		return show(e, func(p CognitionIn) string {
			return "## " + title(string(p.Role)) + "\n\n" + blocksText(p.Blocks)
		})
	case thread.EventMessage:
		return show(e, func(p Message) string { return "## Message\n\n" + blocksText(p.Blocks) })
	case thread.EventCognitionOut:
		return show(e, answerText)
	case thread.EventToolCallResult:
		return show(e, resultText)
	case thread.EventThreadCompleted, thread.EventThreadError, thread.EventThreadCancelled, thread.EventThreadHandoff:
		return show(e, func(p Ended) string { return endText(p, said()) })
	default:
		return noteText(e)
	}
}

// noteText is an event that takes one line.
func noteText(e thread.Event) string {
	switch e.Type {
	case thread.EventErrorClassified:
		return show(e, func(p ErrorClassified) string { return note("Error (%s): %s", p.Category, p.Message) })
	case thread.EventRetry:
		return show(e, func(p Retry) string {
			return note("Attempt %d follows in %d ms: %s", p.Attempt, p.DelayMS, p.Reason)
		})
	case thread.EventLimitExceeded:
		return show(e, func(p LimitExceeded) string {
			return note("%v", p.Reached())
		})
	case thread.EventQuestionAsked:
		return show(e, func(p QuestionAsked) string {
			return note("Asked until %s: %s To answer: rye-mcp threads approve %s", p.DeadlineAt, p.Text, e.ThreadID)
		})
	case thread.EventQuestionAnswered:
		return show(e, decisionText)
	case thread.EventChildThreadStarted:
		return show(e, func(p ChildStarted) string {
			return note("Started thread `%s` of directive `%s`", p.ThreadID, p.Directive)
		})
	case thread.EventHookFired:
		return show(e, hookText)
	case thread.EventThreadContinued:
		return show(e, func(p ThreadContinued) string {
			if p.Via == thread.ViaFork {
				return note("A copy of thread `%s` (messages: %d)", p.PreviousThreadID, p.Messages)
			}
			return note("Continues thread `%s` (%s; messages taken over: %d)", p.PreviousThreadID, p.Via, p.Messages)
		})
	case thread.EventThreadResumed:
		return show(e, func(p ThreadResumed) string {
			return note("Resumed as thread `%s` (turns taken over: %d): %s", p.NewThreadID, p.ReconstructedTurns, p.MessagePreview)
		})
	default:
		return note("%s: %s", e.Type, e.Payload)
	}
}

// show decodes the payload and renders it, or gives the payload as it is when
// it does not have the expected form.
func show[T any](e thread.Event, render func(T) string) string {
	p, err := Decode[T](e)
	if err != nil {
		return note("%s: %s", e.Type, e.Payload)
	}
	return render(p)
}

func note(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	return "> " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> ") + "\n\n"
}

func blocksText(blocks Blocks) string {
	var b strings.Builder
	for _, block := range blocks {
		switch block.Type {
		case llm.TextBlock:
			b.WriteString(block.Text + "\n\n")
		case llm.ReasoningBlock:
			if block.Text != "" {
				b.WriteString(note("%s", block.Text))
			}
		case llm.ToolUseBlock:
			fmt.Fprintf(&b, "Call `%s`:\n\n%s", block.ToolName, fenced(string(block.Input)))
		case llm.ToolResultBlock:
			b.WriteString(fenced(block.Text))
		}
	}
	return b.String()
}

func answerText(p CognitionOut) string {
	return fmt.Sprintf("## Turn %d\n\n%s", p.Turn, blocksText(p.Blocks))
}

func resultText(p ToolCallResult) string {
	word := "Result"
	if p.IsError {
		word = "Error"
	}
	return fmt.Sprintf("%s of `%s` after %d ms:\n\n%s", word, p.Tool, p.DurationMS, fenced(p.Text))
}

func hookText(p HookFired) string {
	result := p.Result
	if p.Error != "" {
		result = "failed: " + p.Error
	}
	return note("Hook `%s` fired at %s: %s", p.HookID, p.Event, result)
}

func decisionText(p QuestionAnswered) string {
	values := make([]string, 0, len(p.Limits))
	for _, name := range slices.Sorted(maps.Keys(p.Limits)) {
		values = append(values, fmt.Sprintf(" %s=%v", name, p.Limits[name]))
	}
	return note("Answered by %s after %d ms: %s%s", p.By, p.WaitedMS, p.Decision, strings.Join(values, ""))
}

// resultAbove stands where a result would stand a second time.
const resultAbove = "The result is the answer above.\n\n"

// endText tells how a thread ended. A result that is the answer before it is not
// written a second time.
func endText(p Ended, said string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", title(string(p.Outcome.State)))
	if h := p.Outcome.Handoff; h != nil {
		b.WriteString(note("Handed over to thread `%s` (turns taken over: %d)", h.NewThreadID, h.TrailingTurns))
	}
	if p.Outcome.Error != nil {
		b.WriteString(note("%s: %s", p.Outcome.Error.Code, p.Outcome.Error.Message))
	}
	if due := p.Outcome.Retry; due != nil {
		b.WriteString(note("To be tried again at %s (attempt %d of %d)", due.At.UTC().Format(time.RFC3339), due.Attempt, due.Attempts))
	}
	switch {
	case len(p.ResultOf) > 1:
		fmt.Fprintf(&b, "The result is the last %d answers above.\n\n", len(p.ResultOf))
	case len(p.ResultOf) == 1:
		b.WriteString(resultAbove)
	case p.Outcome.Result == "":
	case strings.Contains(said, strings.TrimSpace(p.Outcome.Result)):
		b.WriteString(resultAbove)
	default:
		b.WriteString(p.Outcome.Result + "\n\n")
	}
	if len(p.Outcome.Outputs) > 0 {
		if outputs, err := encode(p.Outcome.Outputs); err == nil {
			b.WriteString("Outputs:\n\n" + fenced(string(outputs)))
		}
	}
	fmt.Fprintf(&b, "Turns: %d, tokens: %d, spend: %s.\n\n", p.Cost.Turns, p.Cost.Tokens(), p.Cost.Spend)
	return b.String()
}

// fenced puts text into a code block that its own backticks cannot close.
func fenced(text string) string {
	longest, run := 2, 0
	for _, r := range text {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n\n"
}

func title(word string) string {
	if word == "" {
		return word
	}
	return strings.ToUpper(word[:1]) + word[1:]
}
