package action

import (
	"encoding/json"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Bounds in bytes of JSON. The strictest MCP client shows its model 12 000
// characters of an answer; a thread's model is given pages of another length.
const (
	defaultText  = 10_000
	threadText   = 20_000
	maxText      = 30_000 // in a thread
	maxAsked     = 1_000_000
	leastText    = 2_000
	metadataRoom = 1_000
	maxHits      = 10_000 // all hits of one answer
	besideHits   = 500    // what a client is told beside them, and the page without its query
	besideHit    = 40     // the mark of its signature
)

// textRoom is how long a text may be in the answer to a call that asks for so many
// bytes, beside metadata that may be long themselves.
func textRoom(c Caller, asked int, metadata map[string]any) int {
	switch {
	case asked > 0 && c.InThread:
		return min(asked, maxText)
	case asked > 0:
		return min(asked, maxAsked)
	case c.InThread:
		return threadText
	}
	beside, err := json.Marshal(metadata)
	if err != nil {
		return defaultText
	}
	return min(defaultText, max(leastText, defaultText+metadataRoom-len(beside)))
}

// pageOf is the part of a text that begins at byte offset and takes at most
// room bytes as JSON, and the offset of what follows, 0 at the end. It ends with
// a line where a line ends in its second half.
func pageOf(text string, offset, room int) (page string, next int, err error) {
	if offset > len(text) {
		return "", 0, tool.Faultf(tool.CodeBadArguments, "offset %d is behind the end of the content, which has %d bytes", offset, len(text)).
			WithHint("Give next_offset of the answer before, or leave offset out.")
	}
	rest := item.End(text, len(text)-offset)
	end := tool.FitsJSON(rest, room)
	if end == len(rest) {
		return rest, 0, nil
	}
	if line := strings.LastIndexByte(rest[:end], '\n') + 1; line > end/2 {
		end = line
	}
	return rest[:end], len(text) - len(rest) + end, nil
}

// PageOf is pageOf for a text of an MCP server's own.
func PageOf(text string, offset, asked int) (page string, next int, err error) {
	return pageOf(text, offset, textRoom(Caller{}, asked, nil))
}

// hitRoom is how long the hits may be that a search answers with, together.
func hitRoom(c Caller, r SearchRequest) int {
	room := maxHits
	if c.Room > 0 {
		room = min(room, c.Room-besideHits-tool.SizeInJSON(r.Query))
	}
	if r.room > 0 {
		room = min(room, r.room)
	}
	return room
}

// fitHits leaves out the hits at the end of a page that have no room.
func fitHits(hits []search.Hit, room int) ([]search.Hit, error) {
	for i, hit := range hits {
		raw, err := json.Marshal(hit)
		if err != nil {
			return nil, err
		}
		if room -= len(raw) + besideHit; room < 0 && i > 0 {
			return hits[:i], nil
		}
	}
	return hits, nil
}
