package tail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// telling are the arguments that tell a person what a call is about, in the order
// in which they are looked for.
var telling = [...]string{"path", "command", "item_id", "query", "pattern", "operation", "thread_id", "name", "url"}

// within are the arguments whose own tell more of a call that runs another tool.
var within = [...]string{"parameters", "inputs", "arguments"}

// outcomes are the fields of a result that say the most, in the order in which they are
// looked for.
var outcomes = [...]string{"error", "result", "output", "stdout", "stderr", "content", "text", "message", "summary", "data", "thread_id", "path", "status"}

const (
	// maxTold is how many columns of an argument or a result are shown.
	maxTold = 100
	// maxLooked is how many bytes of a result are read for the line about it.
	maxLooked = 64 << 10
	// maxOpen is how many calls are kept that have no result yet.
	maxOpen = 256
)

// call is a call of a tool, with what it is about.
func (r *Reader) call(p transcript.ToolCallStart) []Piece {
	about := subject(p.Input)
	if r.calls == nil || len(r.calls) >= maxOpen {
		r.calls = map[string]string{}
	}
	r.calls[p.CallID] = about
	return line(Call, "→ "+plain.Line(p.Tool)+" "+about)
}

// subject is what the input of a call says that it is about.
func subject(input []byte) string {
	var given map[string]any
	if json.Unmarshal(input, &given) != nil {
		return ""
	}
	about := told(given)
	for _, name := range within {
		if inner, ok := given[name].(map[string]any); ok {
			about += " " + told(inner)
			break
		}
	}
	return plain.Shorten(plain.Line(about), maxTold)
}

// told is the first argument that tells something.
func told(given map[string]any) string {
	for _, name := range telling {
		if value, ok := given[name].(string); ok && value != "" {
			return value
		}
	}
	return ""
}

// result is the outcome of a call in a line: why it failed, or how much it gave, how
// long it took and how that begins.
func (r *Reader) result(p transcript.ToolCallResult) []Piece {
	about := r.calls[p.CallID]
	delete(r.calls, p.CallID)
	r.spend = r.spend.Plus(p.Spend)
	if p.IsError {
		return line(Failure, failure(p.Tool, about, p.Text))
	}
	text := fmt.Sprintf("← %s %s", plain.Line(p.Tool), Size(len(p.Text)))
	if p.DurationMS >= 100 {
		text += " in " + seconds(p.DurationMS)
	}
	if said := beginning(p.Text); said != "" {
		text += ": " + said
	}
	return line(Result, text)
}

// failure tells which call failed, and why.
func failure(tool, about, said string) string {
	text := "✗ " + plain.Line(tool)
	if about != "" {
		text += " " + about
	}
	return text + ": " + beginning(said)
}

// beginning is the beginning of what a tool gave, for a line: of JSON the field that says
// the most.
func beginning(text string) string {
	if len(text) > maxLooked {
		return firstLine(text[:maxLooked])
	}
	var given map[string]any
	if json.Unmarshal([]byte(text), &given) != nil {
		return firstLine(text)
	}
	if said, ok := outcome(given); ok {
		return firstLine(said)
	}
	delete(given, "success")
	if len(given) == 0 {
		return ""
	}
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(text)) != nil {
		return ""
	}
	return firstLine(compact.String())
}

// outcome is the field of a result that says the most.
func outcome(given map[string]any) (said string, ok bool) {
	for _, name := range outcomes {
		switch value := given[name].(type) {
		case string:
			if strings.TrimSpace(value) != "" {
				return value, true
			}
		case map[string]any:
			if said, ok := outcome(value); ok {
				return said, true
			}
		}
	}
	return "", false
}

// firstLine is the beginning of a text, for one line.
func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return plain.Shorten(plain.Line(first), maxTold)
}
