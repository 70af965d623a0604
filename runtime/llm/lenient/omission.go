package lenient

import (
	"fmt"
	"unsafe"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// omission is a conversation without what was refused of it. Messages are recognised by
// the arrays of their blocks, and those that are sent keep theirs from call to call, so
// that nothing is encoded twice.
type omission struct {
	of   []llm.Message // the messages with which the conversation began, as they were given
	sent []llm.Message // the same as they are sent
	gone [kinds]reach
}

// kind is something that can be left out of a conversation.
type kind int

const (
	thoughts kind = iota
	images
	kinds
)

// reach is how far something was left out.
type reach struct {
	messages int  // with which the conversation began
	always   bool // it was refused again: it is left out of what comes, too
}

// give leaves out one kind of thing of all messages there are. It is false when there is
// nothing more to leave out.
func (o *omission) give(messages []llm.Message, what kind) bool {
	o.follow(messages)
	gone := &o.gone[what]
	more := false
	for i := gone.messages; i < len(messages); i++ {
		rest := without(o.sent[i], what)
		more = more || !same(rest, o.sent[i])
		o.sent[i] = rest
	}
	if more {
		gone.always = gone.messages > 0
		gone.messages = len(messages)
	}
	return more
}

// apply is a conversation as it is sent.
func (o *omission) apply(messages []llm.Message) []llm.Message {
	if len(o.of) == 0 {
		return messages
	}
	o.follow(messages)
	for what := range kinds {
		gone := &o.gone[what]
		if !gone.always {
			continue
		}
		for ; gone.messages < len(messages); gone.messages++ {
			o.sent[gone.messages] = without(o.sent[gone.messages], what)
		}
	}
	return o.sent[:len(messages):len(messages)]
}

// follow takes over messages that are new. A conversation that goes another way begins
// anew from there.
func (o *omission) follow(messages []llm.Message) {
	known := 0
	for known < min(len(o.of), len(messages)) && same(o.of[known], messages[known]) {
		known++
	}
	o.of = append(o.of[:known:known], messages[known:]...)
	o.sent = append(o.sent[:known:known], messages[known:]...)
	for what := range o.gone {
		o.gone[what].messages = min(o.gone[what].messages, known)
	}
}

// same reports whether two messages are one, by the array of their blocks.
func same(a, b llm.Message) bool {
	return len(a.Blocks) == len(b.Blocks) && unsafe.SliceData(a.Blocks) == unsafe.SliceData(b.Blocks)
}

// without is a message without one kind of thing, or the same where there is none.
func without(m llm.Message, what kind) llm.Message {
	has, strip := isThought, stripThought
	if what == images {
		has, strip = isShown, stripImages
	}
	for i, b := range m.Blocks {
		if !has(b) {
			continue
		}
		rest := append(make([]llm.Block, 0, len(m.Blocks)), m.Blocks[:i]...)
		for _, b := range m.Blocks[i:] {
			if kept, keep := strip(b); keep {
				rest = append(rest, kept)
			}
		}
		return llm.Message{Role: m.Role, Blocks: rest}
	}
	return m
}

func isThought(b llm.Block) bool { return b.Type == llm.ReasoningBlock || b.Signature != "" }

func stripThought(b llm.Block) (rest llm.Block, keep bool) {
	b.Signature = ""
	return b, b.Type != llm.ReasoningBlock
}

func isShown(b llm.Block) bool { return len(b.Images) > 0 }

// stripImages says in a text what was there.
func stripImages(b llm.Block) (rest llm.Block, keep bool) {
	for _, image := range b.Images {
		if b.Text != "" {
			b.Text += "\n"
		}
		b.Text += fmt.Sprintf("[%s of %d bytes, which your provider refused: you cannot see it]", image.MediaType, len(image.Data))
	}
	b.Images = nil
	if b.Type == llm.ImageBlock {
		b.Type = llm.TextBlock
	}
	return b, true
}
