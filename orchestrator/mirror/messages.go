package mirror

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// maxText is how much of one text is sent, in bytes.
const maxText = 256 << 10

// said is what a transcript gives of messages.
type said struct {
	messages []langgraph.Message
	seq      int64 // of the last event that was read
}

// read reads the messages of a transcript behind an event. Messages are the words to the
// model, its answers, its calls and their results; system prompts, thoughts and the bytes
// of images stay here. A transcript that is being written ends with its last whole line.
func (m *Mirror) read(id thread.ID, at uuid.UUID, after int64) (said, error) {
	s := said{seq: after}
	names := map[string]string{}
	for e, err := range transcript.Events(m.Records.Of(id).Transcript()) {
		if err != nil {
			return s, err
		}
		messages, err := messagesOf(e, names)
		if err != nil {
			return s, err
		}
		if e.Seq <= after || len(messages) == 0 {
			continue
		}
		s.seq = e.Seq
		for i, msg := range messages {
			msg.ID = uuid.NewSHA1(at, fmt.Appendf(nil, "%d/%d", e.Seq, i)).String()
			s.messages = append(s.messages, m.cleaned(msg))
		}
	}
	return s, nil
}

// messagesOf are the messages of an event. Names are those of the tools that were called,
// by the calls' ids.
func messagesOf(e thread.Event, names map[string]string) ([]langgraph.Message, error) {
	switch e.Type {
	case thread.EventCognitionIn:
		in, err := transcript.Decode[transcript.CognitionIn](e)
		if err == nil && in.Role == llm.Assistant {
			return answer(in.Blocks, names), nil
		}
		return question(in.Blocks, names), err
	case thread.EventMessage:
		told, err := transcript.Decode[transcript.Message](e)
		return question(told.Blocks, names), err
	case thread.EventCognitionOut:
		out, err := transcript.Decode[transcript.CognitionOut](e)
		return answer(out.Blocks, names), err
	case thread.EventToolCallResult:
		r, err := transcript.Decode[transcript.ToolCallResult](e)
		return []langgraph.Message{result(llm.Block{ToolCallID: r.CallID, Text: r.Text, IsError: r.IsError, Images: r.Images}, names)}, err
	default:
		return nil, nil
	}
}

// question is what was said to the model: results of calls, and text.
func question(blocks []llm.Block, names map[string]string) (messages []langgraph.Message) {
	var texts []string
	for _, b := range blocks {
		if b.Type == llm.ToolResultBlock {
			messages = append(messages, result(b, names))
		} else if text := textOf(b); text != "" {
			texts = append(texts, text)
		}
	}
	if len(texts) > 0 {
		messages = append(messages, langgraph.Message{Type: langgraph.Human, Content: strings.Join(texts, "\n\n")})
	}
	return messages
}

// answer is what the model said.
func answer(blocks []llm.Block, names map[string]string) []langgraph.Message {
	msg := langgraph.Message{Type: langgraph.AI}
	var texts []string
	for _, b := range blocks {
		if b.Type == llm.ToolUseBlock {
			names[b.ToolCallID] = b.ToolName
			msg.ToolCalls = append(msg.ToolCalls, langgraph.ToolCall{ID: b.ToolCallID, Name: b.ToolName, Args: args(b.Input), Type: "tool_call"})
		} else if text := textOf(b); text != "" {
			texts = append(texts, text)
		}
	}
	if msg.Content = strings.Join(texts, "\n\n"); msg.Content == "" && len(msg.ToolCalls) == 0 {
		return nil
	}
	return []langgraph.Message{msg}
}

func result(b llm.Block, names map[string]string) langgraph.Message {
	msg := langgraph.Message{Type: langgraph.Tool, ToolCallID: b.ToolCallID, Name: names[b.ToolCallID], Content: b.Text, Status: "success"}
	for _, image := range b.Images {
		msg.Content = strings.TrimPrefix(msg.Content+"\n"+pictured(image), "\n")
	}
	if b.IsError {
		msg.Status = "error"
	}
	return msg
}

// textOf is the text of a block; empty: it has none that is sent.
func textOf(b llm.Block) string {
	switch b.Type {
	case llm.TextBlock:
		return b.Text
	case llm.ImageBlock:
		texts := []string{}
		for _, image := range b.Images {
			texts = append(texts, pictured(image))
		}
		return strings.Join(texts, "\n")
	default:
		return ""
	}
}

func pictured(image llm.Image) string { return "[" + image.MediaType + "]" }

// args are the arguments of a call; those that are no object stand in one.
func args(input json.RawMessage) map[string]any {
	if object := objectOf(input); object != nil {
		return object
	}
	return map[string]any{"input": string(input)}
}

// objectOf is an object of JSON with its numbers as they are written; nil for anything else.
func objectOf(data []byte) map[string]any {
	value, _ := item.ReadJSON(data)
	object, _ := value.(map[string]any)
	return object
}

// cleaned is a message as it may leave this machine.
func (m *Mirror) cleaned(msg langgraph.Message) langgraph.Message {
	msg.Content = clipped(string(m.clean([]byte(msg.Content))))
	for i, call := range msg.ToolCalls {
		data, err := json.Marshal(call.Args)
		if err != nil {
			continue
		}
		if len(data) > maxText {
			msg.ToolCalls[i].Args = map[string]any{"left_out": fmt.Sprintf("%d bytes", len(data))}
			continue
		}
		clean := objectOf(m.clean(data))
		if clean == nil {
			clean = map[string]any{"left_out": fmt.Sprintf("%d bytes", len(data))}
		}
		msg.ToolCalls[i].Args = clean
	}
	return msg
}

// clipped is a text of bounded length that says what it lacks.
func clipped(text string) string {
	if len(text) <= maxText {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	begin := item.Begin(text, maxText)
	return fmt.Sprintf("%s\n[%d more bytes]", strings.ToValidUTF8(begin, "\uFFFD"), len(text)-len(begin))
}
