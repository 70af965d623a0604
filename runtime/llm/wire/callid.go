package wire

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// callIDs goes through the calls of a conversation that is sent to a vendor who refuses some
// ids of calls, and ids that come twice: after a change of model they are another vendor's,
// and servers that count calls begin anew with each answer. Ids that can be sent stay as they
// are; the others, with those of their results, become hashes of them and of the call's number
// in the conversation, so that a message that was sent is sent alike again.
type callIDs struct {
	walked int // messages so far
	made   int // calls so far
	taken  map[string]bool
	open   map[string][]string // ids as sent of calls without a result yet, by their own
}

// sent is the next message; its blocks are copied where an id differs.
func (c *callIDs) sent(m llm.Message, takes func(id string) bool) llm.Message {
	c.walked++
	if m.Role == llm.Assistant {
		clear(c.open) // a call that has no result by now gets none
	}
	differ := false
	for i, b := range m.Blocks {
		var id string
		switch b.Type {
		case llm.ToolUseBlock:
			id = c.call(b.ToolCallID, takes)
		case llm.ToolResultBlock:
			id = c.result(b.ToolCallID)
		default:
			continue
		}
		if id == b.ToolCallID {
			continue
		}
		if !differ {
			m.Blocks, differ = slices.Clone(m.Blocks), true
		}
		m.Blocks[i].ToolCallID = id
	}
	return m
}

func (c *callIDs) call(id string, takes func(id string) bool) string {
	if c.taken == nil {
		c.taken, c.open = map[string]bool{}, map[string][]string{}
	}
	c.made++
	sent := id
	if id == "" || c.taken[id] || !takes(id) {
		sent = c.other(id)
	}
	c.taken[sent] = true
	c.open[id] = append(c.open[id], sent)
	return sent
}

// other is what is sent in place of an id.
func (c *callIDs) other(id string) string {
	for again := 0; ; again++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", c.made, again, id))
		if sent := fmt.Sprintf("%x", sum)[:shortLength]; !c.taken[sent] {
			return sent
		}
	}
}

// result is the id of a result: results of calls with the same id come in their order.
func (c *callIDs) result(id string) string {
	waiting := c.open[id]
	if len(waiting) == 0 {
		return id
	}
	c.open[id] = waiting[1:]
	return waiting[0]
}

// shortLength is that of ids that every vendor takes, where they are letters and digits.
const shortLength = 9

// ShortID reports whether an id of a call is what Mistral takes: nine letters and digits.
func ShortID(id string) bool {
	return len(id) == shortLength && PlainID(id) && !strings.ContainsAny(id, "_-")
}

// PlainID reports whether an id of a call is what Anthropic takes: letters, digits, "_"
// and "-".
func PlainID(id string) bool {
	for _, c := range []byte(id) {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return id != ""
}
