package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// SentBack is the input of an earlier tool call as a vendor accepts it in a
// conversation: a JSON object. Models sometimes write something else; it is
// then given back as text inside an object, so that the model sees its mistake
// and the conversation can go on. A half of a character, which is no text, is replaced.
func SentBack(input json.RawMessage) json.RawMessage {
	trimmed := whole(bytes.TrimSpace(input))
	if len(trimmed) == 0 {
		return json.RawMessage("{}")
	}
	if trimmed[0] == '{' && json.Valid(trimmed) {
		return trimmed
	}
	wrapped, err := json.Marshal(map[string]string{"invalid_json": string(input)})
	if err != nil { // a map of strings always encodes
		return json.RawMessage("{}")
	}
	return wrapped
}

// whole is JSON without bytes that are no UTF-8 and without escapes of half a character
// (a surrogate without the other). The escape of U+FFFD is as long as the one it replaces.
func whole(input []byte) []byte {
	if !utf8.Valid(input) {
		input = bytes.ToValidUTF8(input, []byte("\ufffd"))
	}
	out := input
	for i := 0; i+1 < len(input); i++ {
		if input[i] != '\\' {
			continue
		}
		first, isFirst := escaped(input[i:])
		second, isSecond := escaped(input[min(len(input), i+escapeLength):])
		switch {
		case isFirst && isSecond && utf16.DecodeRune(first, second) != utf8.RuneError:
			i += 2*escapeLength - 1
		case isFirst && utf16.IsSurrogate(first):
			if &out[0] == &input[0] {
				out = bytes.Clone(input)
			}
			copy(out[i:], `\ufffd`)
			i += escapeLength - 1
		default:
			i++ // what is escaped
		}
	}
	return out
}

// escapeLength is that of \u and four digits.
const escapeLength = 6

// escaped reads such an escape.
func escaped(text []byte) (r rune, ok bool) {
	if len(text) < escapeLength || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:escapeLength]), 16, 16)
	return rune(n), err == nil
}

// maxName is how long the name of a tool may be: 64 characters, OpenAI's limit.
const maxName = 64

// SentName is the name of an earlier tool call as every vendor accepts it. Models call
// tools that there are not, by names that were never offered, such as
// "multi_tool_use.parallel"; sent back as it is, such a name is refused in every later
// request of the conversation.
func SentName(name string) string {
	sent := []byte(name)
	for i, c := range sent {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			sent[i] = '_'
		}
	}
	return cmp.Or(string(sent[:min(len(sent), maxName)]), "_")
}

// Schema is the schema of a tool's input as every vendor accepts it; a tool
// without one takes no parameters.
func Schema(tool llm.Tool) (json.RawMessage, error) {
	if len(bytes.TrimSpace(tool.Schema)) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	if !json.Valid(tool.Schema) {
		return nil, fmt.Errorf("the schema of tool %q is not JSON", tool.Name)
	}
	return tool.Schema, nil
}
