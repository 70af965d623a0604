package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// given are the messages of a conversation as the model is given them: without images
// where it cannot see, and without what another model has thought and signed, which
// vendors take from none but their own. A conversation only grows, so each message is
// looked at once, and is recognised as the one that was sent before.
func (m *model) given(messages []llm.Message) []llm.Message {
	for _, message := range messages[len(m.seen):] {
		blocks := ownBlocks(message.Blocks, m.choice.Ref())
		if !m.choice.Vision {
			blocks = blindBlocks(blocks)
		}
		m.seen = append(m.seen, llm.Message{Role: message.Role, Blocks: blocks})
	}
	return m.seen[:len(m.seen):len(m.seen)]
}

// ownBlocks leaves out what a model other than the one named has thought, and its
// signatures. A list without such is left as it is.
func ownBlocks(blocks []llm.Block, model string) []llm.Block {
	foreign := func(b llm.Block) bool { return b.By != "" && b.By != model }
	if !slices.ContainsFunc(blocks, foreign) {
		return blocks
	}
	var out []llm.Block
	for _, b := range blocks {
		if foreign(b) {
			if b.Type == llm.ReasoningBlock {
				continue
			}
			b.Signature, b.By = "", ""
		}
		out = append(out, b)
	}
	return out
}

// signedBy says which model has thought and signed the blocks of an answer.
func signedBy(model string, blocks []llm.Block) {
	for i := range blocks {
		if b := &blocks[i]; b.Type == llm.ReasoningBlock || b.Signature != "" {
			b.By = model
		}
	}
}

// cacheKeyOf is the same for all threads of a chain, and the copies of its first,
// whose requests begin alike, and tells nothing of them.
func cacheKeyOf(meta thread.Meta) string {
	root := meta.ChainRootID
	if meta.ForkedFrom != nil {
		root = meta.ForkedFrom.ThreadID
	}
	if root == "" {
		root = meta.ThreadID
	}
	sum := sha256.Sum256([]byte(root))
	return "rye-" + hex.EncodeToString(sum[:16])
}
