package transcript

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// maxRepeated is how long a result may be that stands in the end of a thread although
// it is the text of its last answer, which stands before it. The end names the answers
// that a longer one is made of.
const maxRepeated = 4 << 10

// lastAnswer is where the newest answer of a thread stands. One that the output limit
// cut off and the next are one answer.
type lastAnswer struct {
	parts []answerPart
	cut   bool // the next part goes on with it
}

// answerPart is the line of a cognition_out event.
type answerPart struct {
	seq, offset, length int64
}

func (l *lastAnswer) add(part answerPart, stop llm.StopReason) {
	if !l.cut {
		l.parts = l.parts[:0]
	}
	l.parts = append(l.parts, part)
	l.cut = stop == llm.StopMaxTokens
}

// seqs are the numbers of its events.
func (l *lastAnswer) seqs() []int64 {
	seqs := make([]int64, len(l.parts))
	for i, part := range l.parts {
		seqs[i] = part.seq
	}
	return seqs
}

// text reads what it says from the transcript, as the result of a thread is made of it.
func (l *lastAnswer) text(r io.ReaderAt) (string, error) {
	var texts []string
	for _, part := range l.parts {
		line := make([]byte, part.length)
		if err := readFull(r, line, part.offset); err != nil {
			return "", err
		}
		e, err := decodeLine(line)
		if err != nil {
			return "", err
		}
		text, err := saidText(e)
		if err != nil {
			return "", err
		}
		texts = append(texts, text)
	}
	return joined(texts), nil
}

// stored is an end as it is written: without a long result that is the last answer.
func (w *Writer) stored(end Ended) Ended {
	if len(end.Outcome.Result) <= maxRepeated {
		return end
	}
	// A result that cannot be read again is written again.
	if text, err := w.answer.text(w.f); err == nil && text == end.Outcome.Result {
		end.Outcome.Result, end.ResultOf = "", w.answer.seqs()
	}
	return end
}

// saidText is what the model wrote in an answer.
func saidText(e thread.Event) (string, error) {
	out, err := Decode[CognitionOut](e)
	if err != nil {
		return "", err
	}
	return llm.TextOf(out.Blocks), nil
}

// joined is the result of answers with those texts.
func joined(texts []string) string { return strings.TrimSpace(strings.Join(texts, "")) }

// withResult puts the result of an end into its outcome, read from the answers that it
// names. When one cannot be read the outcome counts all the same and says so: [Verify]
// names the damage.
func (e Ended) withResult(from iter.Seq2[thread.Event, error]) (Ended, error) {
	if len(e.ResultOf) == 0 {
		return e, nil
	}
	var texts []string
	for event, err := range from {
		if err != nil && !isLineError(err) && !isTorn(err) {
			return e, err
		}
		if err != nil || event.Seq != e.ResultOf[len(texts)] || event.Type != thread.EventCognitionOut {
			continue
		}
		text, err := saidText(event)
		if err != nil {
			continue
		}
		if texts = append(texts, text); len(texts) == len(e.ResultOf) {
			break
		}
	}
	e.Outcome.Result = joined(texts)
	if len(texts) < len(e.ResultOf) {
		e.Outcome.Warnings = append(slices.Clip(e.Outcome.Warnings),
			fmt.Sprintf("the result is not whole: answer %d of the transcript cannot be read", e.ResultOf[len(texts)]))
	}
	e.ResultOf = nil
	return e, nil
}
