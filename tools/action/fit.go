package action

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// MCP clients show their models between 12 000 and 50 000 characters of a
// result. These bounds are in bytes of JSON and leave room for what stands
// beside the text.
const (
	defaultText = 20_000
	maxText     = 30_000
	maxHits     = 30_000 // all hits of one answer
)

// pageOf is the part of a text that begins at byte offset and takes at most
// room bytes as JSON, and the offset of what follows, 0 at the end. It ends with
// a line where a line ends in its second half.
func pageOf(text string, offset, room int) (page string, next int, err error) {
	if offset > len(text) {
		return "", 0, tool.Faultf(tool.CodeBadArguments, "offset %d is behind the end of the content, which has %d bytes", offset, len(text)).
			WithHint("Give next_offset of the answer before, or leave offset out.")
	}
	for offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset++
	}
	rest := text[offset:]
	end := fits(rest, room)
	if end == len(rest) {
		return rest, 0, nil
	}
	if line := strings.LastIndexByte(rest[:end], '\n') + 1; line > end/2 {
		end = line
	}
	return rest[:end], offset + end, nil
}

// fits is how many bytes of text take at most room bytes as JSON.
func fits(text string, room int) int {
	for at, r := range text {
		if room -= jsonSize(r); room < 0 {
			return at
		}
	}
	return len(text)
}

// jsonSize is how many bytes encoding/json writes for a character of a string;
// a byte that is not UTF-8 becomes a replacement character.
func jsonSize(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return 2
	case r < ' ', r == '\u2028', r == '\u2029', r == utf8.RuneError:
		return 6
	default:
		return utf8.RuneLen(r)
	}
}

// fitHits leaves out the hits at the end of a page that have no room.
func fitHits(hits []search.Hit) ([]search.Hit, error) {
	room := maxHits
	for i, hit := range hits {
		raw, err := json.Marshal(hit)
		if err != nil {
			return nil, err
		}
		if room -= len(raw) + 1; room < 0 && i > 0 {
			return hits[:i], nil
		}
	}
	return hits, nil
}
