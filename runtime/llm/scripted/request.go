package scripted

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// request is what a script sees of a request, whatever its protocol.
type request struct {
	Model    string
	System   string
	Tools    []string
	Messages []llm.Message
	body     []byte
}

// turn is the number of the answer that is asked for, from 1.
func (r *request) turn() int {
	n := 1
	for _, message := range r.Messages {
		if message.Role == llm.Assistant {
			n++
		}
	}
	return n
}

// first is the text of the first user message.
func (r *request) first() string {
	for _, message := range r.Messages {
		if message.Role == llm.User {
			return textOf(message)
		}
	}
	return ""
}

// last is the text of the last message, tool results included.
func (r *request) last() string {
	if len(r.Messages) == 0 {
		return ""
	}
	return textOf(r.Messages[len(r.Messages)-1])
}

func textOf(message llm.Message) string {
	var texts []string
	for _, block := range message.Blocks {
		if block.Text != "" {
			texts = append(texts, block.Text)
		}
		for _, image := range block.Images {
			texts = append(texts, fmt.Sprintf("[%s of %d bytes]", image.MediaType, len(image.Data)))
		}
	}
	return strings.Join(texts, "\n")
}

// add adds a block to the last message when it is of the role, else to a new one: what
// one side says between two messages of the other is one message.
func (r *request) add(role llm.Role, block llm.Block) {
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == role {
		r.Messages[n-1].Blocks = append(r.Messages[n-1].Blocks, block)
		return
	}
	r.Messages = append(r.Messages, llm.Message{Role: role, Blocks: []llm.Block{block}})
}

// addResult adds the result of a tool call in protocols that mark a failure in its text.
func (r *request) addResult(call, text string) {
	text, failed := strings.CutPrefix(text, "Error: ")
	r.add(llm.User, llm.Block{Type: llm.ToolResultBlock, ToolCallID: call, Text: text, IsError: failed})
}

// addWords adds what the user says and shows.
func (r *request) addWords(c content) {
	r.add(llm.User, llm.Block{Type: llm.TextBlock, Text: c.text})
	if len(c.images) > 0 {
		r.add(llm.User, llm.Block{Type: llm.ImageBlock, Images: c.images})
	}
}

func (r *request) toolResults() []string {
	var out []string
	for _, message := range r.Messages {
		for _, block := range message.Blocks {
			if block.Type == llm.ToolResultBlock {
				out = append(out, block.Text)
			}
		}
	}
	return out
}

// id is the same for the same request and different for others, so that ids
// made from it do not collide within a conversation.
func (r *request) id() string {
	sum := sha256.Sum256(r.body)
	return hex.EncodeToString(sum[:8])
}

func (m match) holds(r *request) bool {
	return strings.Contains(r.first(), m.First) &&
		(m.FirstRegex.Regexp == nil || m.FirstRegex.MatchString(r.first())) &&
		strings.Contains(r.last(), m.Last) &&
		(m.LastRegex.Regexp == nil || m.LastRegex.MatchString(r.last())) &&
		(m.Turn == 0 || m.Turn == r.turn()) &&
		strings.Contains(r.System, m.System) &&
		(m.Model == "" || m.Model == r.Model) &&
		(m.Tool == "" || slices.Contains(r.Tools, m.Tool))
}

// answer is a turn rendered for a request.
type answer struct {
	id        string
	model     string
	reasoning string
	text      string
	calls     []answerCall
	stop      llm.StopReason
	usage     llm.Usage
}

type answerCall struct {
	id    string
	name  string
	input []byte
}

// bytesPerToken is the usual rule of thumb for English text.
const bytesPerToken = 4

func (t *turn) answer(r *request) (answer, error) {
	out := answer{id: r.id(), model: r.Model, stop: llm.StopReason(t.StopReason)}
	var err error
	if out.reasoning, err = t.Reasoning.render(r); err != nil {
		return out, fmt.Errorf("reasoning: %w", err)
	}
	if out.text, err = t.Text.render(r); err != nil {
		return out, fmt.Errorf("text: %w", err)
	}
	size := len(out.reasoning) + len(out.text)
	for i, call := range t.ToolCalls {
		input, err := call.render(r)
		if err != nil {
			return out, fmt.Errorf("input of %s: %w", call.Name, err)
		}
		size += len(call.Name) + len(input)
		out.calls = append(out.calls, answerCall{id: fmt.Sprintf("call_%s_%d", out.id, i), name: call.Name, input: input})
	}
	if out.stop == "" {
		out.stop = llm.StopEnd
		if len(out.calls) > 0 {
			out.stop = llm.StopToolUse
		}
	}
	if u := t.Usage; u != nil {
		out.usage = llm.Usage{
			InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
		}
	} else {
		out.usage = llm.Usage{
			InputTokens:  int64(len(r.body)/bytesPerToken + 1),
			OutputTokens: int64(size/bytesPerToken + 1),
		}
	}
	return out, nil
}

func (c toolCall) render(r *request) ([]byte, error) {
	if !c.InputJSON.set() {
		return c.Input.render(r)
	}
	rendered, err := c.InputJSON.render(r)
	return []byte(rendered), err
}
