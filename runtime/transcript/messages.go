package transcript

import (
	"io"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// unanswered is what the model is told about a call whose result was never
// recorded.
const unanswered = "The call has no result: the thread stopped before the tool had answered. " +
	"It may have run in part; look before you repeat it."

// Messages rebuilds the conversation: each cognition_in and each message is a message,
// each cognition_out an assistant message, and the results of its tool calls one
// user message after it, in the order of the calls. A call without a result
// gets an error result, for providers refuse a conversation with an open call;
// a result without a call is left out for the same reason. A torn last line is
// passed over, any other damage is an error.
//
// The bytes of images come from the artifacts of the thread. For one that
// is not there, or not what it was, the model is told so.
func Messages(from records.Source, images tool.Artifacts) ([]llm.Message, error) {
	return MessagesUntil(from, images, Until{})
}

// Until bounds how much of a transcript is read; its zero value bounds nothing.
type Until struct {
	// Turn is the last turn: its answer and the results of its calls are the end.
	Turn int
	// Bytes is where the transcript ends, such as [Report.SignedBytes] of one that
	// grows.
	Bytes int64
}

// MessagesUntil is [Messages] of the beginning of a transcript.
func MessagesUntil(from records.Source, images tool.Artifacts, until Until) ([]llm.Message, error) {
	messages, _, err := Rebuild(from, images, until)
	return messages, err
}

// Rebuild is [MessagesUntil], with the last count that a provider has made of the
// messages: that of an answer among them, or the one that the thread was given with the
// conversation which it goes on with. Its zero value: there is none.
func Rebuild(from records.Source, images tool.Artifacts, until Until) ([]llm.Message, Count, error) {
	if until.Bytes > 0 {
		from = beginning{from, until.Bytes}
	}
	var c conversation
	for e, err := range Events(from) {
		if isTorn(err) || err == nil && until.Turn > 0 && c.isAfter(e, until.Turn) {
			break
		}
		if err == nil {
			err = c.add(e)
		}
		if err != nil {
			return nil, Count{}, err
		}
	}
	c.answer()
	for _, m := range c.messages {
		for i := range m.Blocks {
			loadImages(&m.Blocks[i], images)
		}
	}
	if c.count.Tokens < 0 || c.count.Messages < 0 || c.count.Messages > len(c.messages) {
		c.count = Count{}
	}
	return c.messages, c.count, nil
}

// beginning is so much of a source.
type beginning struct {
	records.Source
	bytes int64
}

// Open implements [records.Source].
func (b beginning) Open() (records.Reader, error) {
	whole, err := b.Source.Open()
	if err != nil {
		return nil, err
	}
	return beginningReader{whole, io.NewSectionReader(whole, 0, b.bytes)}, nil
}

// beginningReader reads so much of a reader.
type beginningReader struct {
	records.Reader
	section *io.SectionReader
}

// ReadAt implements [io.ReaderAt].
func (r beginningReader) ReadAt(p []byte, off int64) (int, error) { return r.section.ReadAt(p, off) }

// Size implements [records.Reader].
func (r beginningReader) Size() (int64, error) {
	whole, err := r.Reader.Size()
	return min(whole, r.section.Size()), err
}

// imageGone is what the model is told about an image that cannot be shown again.
const imageGone = "[an image that stood here is not there any more]"

func loadImages(b *llm.Block, artifacts tool.Artifacts) {
	if len(b.Images) == 0 {
		return
	}
	var found []llm.Image
	for _, image := range b.Images {
		data, err := artifacts.Load(image.Ref)
		if err != nil {
			b.Text = strings.TrimPrefix(b.Text+"\n"+imageGone, "\n")
			continue
		}
		image.Data = data
		found = append(found, image)
	}
	b.Images = found
	if len(found) == 0 && b.Type == llm.ImageBlock {
		b.Type = llm.TextBlock
	}
}

// conversation is a message list that grows by events.
type conversation struct {
	messages []llm.Message
	calls    []llm.Block // of the last answer, not answered yet
	results  []ToolCallResult
	turn     int    // of the last answer
	model    string // that was asked last, "provider/model"
	count    Count
}

// isAfter reports whether an event belongs to the conversation after a turn.
func (c *conversation) isAfter(e thread.Event, turn int) bool {
	switch e.Type {
	case thread.EventCognitionIn, thread.EventMessage:
		return c.turn >= turn
	case thread.EventCognitionOut:
		out, err := Decode[CognitionOut](e)
		return err == nil && out.Turn > turn
	default:
		return false
	}
}

func (c *conversation) add(e thread.Event) error {
	switch e.Type {
	case thread.EventCognitionIn:
		in, err := Decode[CognitionIn](e)
		if err != nil {
			return err
		}
		c.answer()
		c.messages = append(c.messages, llm.Message{Role: in.Role, Blocks: in.Blocks})
	case thread.EventMessage:
		told, err := Decode[Message](e)
		if err != nil {
			return err
		}
		c.answer()
		c.messages = append(c.messages, llm.Message{Role: llm.User, Blocks: told.Blocks})
	case thread.EventCognitionOut:
		out, err := Decode[CognitionOut](e)
		if err != nil {
			return err
		}
		c.answer()
		c.turn = out.Turn
		c.messages = append(c.messages, llm.Message{Role: llm.Assistant, Blocks: out.Blocks})
		if out.Usage.Reported {
			c.count = Count{Tokens: out.Usage.ContextTokens(), Messages: len(c.messages), Model: c.model}
		}
		for _, b := range out.Blocks {
			if b.Type == llm.ToolUseBlock {
				c.calls = append(c.calls, b)
			}
		}
	case thread.EventToolCallResult:
		result, err := Decode[ToolCallResult](e)
		if err != nil {
			return err
		}
		c.results = append(c.results, result)
	default: // not part of the conversation
		c.sized(e)
	}
	return nil
}

// sized takes over what an event beside the conversation says of its size.
func (c *conversation) sized(e thread.Event) {
	switch e.Type {
	case thread.EventThreadContinued:
		if p, err := Decode[ThreadContinued](e); err == nil && p.Counted != nil {
			c.count = *p.Counted
		}
	case thread.EventThreadStarted:
		if p, err := Decode[ThreadStarted](e); err == nil {
			c.model = p.Model
		}
	case thread.EventCognitionRequest:
		if p, err := Decode[CognitionRequest](e); err == nil {
			c.model = p.Model
		}
	default:
	}
}

// answer appends the message that answers the open calls.
func (c *conversation) answer() {
	if len(c.calls) > 0 {
		blocks := make([]llm.Block, len(c.calls))
		for i, call := range c.calls {
			blocks[i] = c.resultOf(call)
		}
		c.messages = append(c.messages, llm.Message{Role: llm.User, Blocks: blocks})
	}
	c.calls, c.results = nil, nil
}

// IsUnanswered reports whether a block stands for the result of a call that has none.
func IsUnanswered(b llm.Block) bool {
	return b.Type == llm.ToolResultBlock && b.IsError && b.Text == unanswered
}

// resultOf takes the first result with the call's id, because some providers
// give several calls of one answer the same id.
func (c *conversation) resultOf(call llm.Block) llm.Block {
	block := llm.Block{Type: llm.ToolResultBlock, ToolCallID: call.ToolCallID}
	for i, r := range c.results {
		if r.CallID == call.ToolCallID {
			c.results = append(c.results[:i:i], c.results[i+1:]...)
			block.Text, block.IsError, block.Images = r.Text, r.IsError, r.Images
			block.Content = llm.ContentOf(r.Sum, r.SameAs)
			return block
		}
	}
	block.Text, block.IsError = unanswered, true
	return block
}
