package wire

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// SentCalls says how each of some messages is sent to a vendor that refuses ids of calls
// that are not legal, and ids that come twice: after a change of model they are another
// vendor's, and servers that count calls begin anew with each answer. Ids that can be sent
// stay as they are; the others, with those of their results, become hashes of them and of
// the call's number in the conversation, so that a message that was sent is sent alike
// again. Messages are recognised by the array of their blocks.
func SentCalls(messages []llm.Message, legal func(id string) bool) func(llm.Message) llm.Message {
	calls := callIDs{legal: legal, taken: map[string]bool{}, open: map[string][]string{}}
	changed := map[*llm.Block][]llm.Block{}
	for _, m := range messages {
		if blocks, differ := calls.sent(m); differ {
			changed[&m.Blocks[0]] = blocks
		}
	}
	return func(m llm.Message) llm.Message {
		if len(m.Blocks) == 0 {
			return m
		}
		if blocks, found := changed[&m.Blocks[0]]; found {
			m.Blocks = blocks
		}
		return m
	}
}

// callIDs goes through the calls of a conversation.
type callIDs struct {
	legal func(string) bool
	taken map[string]bool
	made  int                 // calls so far
	open  map[string][]string // ids as sent of calls without a result yet, by their own
}

// sent are the blocks of the next message; they are copied where an id differs.
func (c *callIDs) sent(m llm.Message) (blocks []llm.Block, differ bool) {
	if m.Role == llm.Assistant {
		clear(c.open) // a call that has no result by now gets none
	}
	blocks = m.Blocks
	for i, b := range m.Blocks {
		var id string
		switch b.Type {
		case llm.ToolUseBlock:
			id = c.call(b.ToolCallID)
		case llm.ToolResultBlock:
			id = c.result(b.ToolCallID)
		default:
			continue
		}
		if id == b.ToolCallID {
			continue
		}
		if !differ {
			blocks, differ = slices.Clone(blocks), true
		}
		blocks[i].ToolCallID = id
	}
	return blocks, differ
}

func (c *callIDs) call(id string) string {
	c.made++
	sent := id
	if id == "" || c.taken[id] || !c.legal(id) {
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
