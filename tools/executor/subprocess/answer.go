package subprocess

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// answer is the result of a tool that has printed something before it.
type answer struct {
	value  any
	before []byte // empty: the value is all
}

// MarshalJSON implements [json.Marshaler].
func (a answer) MarshalJSON() ([]byte, error) { return json.Marshal(a.value) }

// Attachments implements [tool.Attacher].
func (a answer) Attachments() []tool.Attachment {
	return []tool.Attachment{{Name: "what it printed before its result", MediaType: "text/plain; charset=utf-8", Data: bytes.ToValidUTF8(a.before, []byte("\uFFFD"))}}
}

// readAnswer reads what a tool has printed. One JSON value is the result, and several
// objects or lists are a list of them. A value behind text is the result too: the text is
// what some tools print on the way. It is false for everything else, which is text.
func readAnswer(out []byte) (a answer, ok bool) {
	out = bytes.TrimSpace(out)
	if len(out) == 0 {
		return answer{}, false
	}
	if value, ok := parse(out); ok {
		return answer{value: value}, true
	}
	if list, ok := parseAll(out); ok {
		return answer{value: list}, true
	}
	a, ok = behindText(out)
	return a, ok
}

// parseAll reads objects and lists that stand one behind the other, as in JSON Lines.
func parseAll(out []byte) (list []any, ok bool) {
	if !startsValue(out[0]) {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.UseNumber()
	for {
		var value any
		switch err := dec.Decode(&value); {
		case errors.Is(err, io.EOF):
			return list, true
		case err != nil:
			return nil, false
		}
		switch value.(type) {
		case map[string]any, []any:
			list = append(list, value)
		default:
			return nil, false
		}
	}
}

// behindText finds a JSON value that begins on a line and goes on to the end. Where it
// stands behind another value it is a line of a longer text, and no result.
func behindText(out []byte) (a answer, ok bool) {
	tried := 0
	for at := len(out); at > 0 && tried < maxTried; {
		at = bytes.LastIndexByte(out[:at], '\n')
		if at < 0 {
			break // the whole, which has been tried
		}
		from := bytes.TrimSpace(out[at+1:])
		if len(from) == 0 || !startsValue(from[0]) {
			continue
		}
		tried++
		value, ok := parse(from)
		if !ok {
			continue
		}
		before := bytes.TrimSpace(out[:at])
		if _, behindAnother := parse(before[bytes.LastIndexByte(before, '\n')+1:]); behindAnother {
			return answer{}, false
		}
		return answer{value, before}, true
	}
	return answer{}, false
}

// maxTried is how many lines are tried as the beginning of a result.
const maxTried = 2000

// startsValue reports whether a line may begin a result behind other lines: a number
// or a word there is no JSON, but text.
func startsValue(c byte) bool { return c == '{' || c == '[' }

func parse(text []byte) (any, bool) {
	value, err := item.ReadJSON(text)
	return value, err == nil
}
