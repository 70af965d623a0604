package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// encodeResponse translates a request, but for what is said in it, which [encodeItems]
// does.
func encodeResponse(req llm.Request) (sdk.CreateResponseRequest, error) {
	stored := false
	out := sdk.CreateResponseRequest{
		Model:           req.Model,
		Input:           []any{},
		MaxOutputTokens: req.MaxTokens,
		PromptCacheKey:  req.CacheKey,
		Store:           &stored,
	}
	if strings.TrimSpace(req.System) != "" {
		out.Instructions = req.System
	}
	if mayThink(req.Model) {
		out.Include = []sdk.ResponseInclude{sdk.ResponseIncludeReasoningEncryptedContent}
	}
	if req.Effort != "" {
		out.Reasoning = &sdk.ResponseReasoning{Effort: req.Effort}
	}
	for _, tool := range req.Tools {
		schema, err := wire.Schema(tool)
		if err != nil {
			return out, err
		}
		function := map[string]any{"name": tool.Name, "parameters": schema, "strict": false} // strict unless told otherwise
		if tool.Description != "" {
			function["description"] = tool.Description
		}
		out.Tools = append(out.Tools, sdk.ResponseTool{Type: sdk.ToolTypeFunction, Parameters: function})
	}
	return out, nil
}

// mayThink is false for the models that are known not to think: they refuse a request
// for what they have thought. A deployment can have any name.
func mayThink(model string) bool {
	return !slices.ContainsFunc([]string{"gpt-3", "gpt-4", "chatgpt"}, func(prefix string) bool {
		return strings.HasPrefix(strings.ToLower(model), prefix)
	})
}

// Items of a request, each a type of its own in the protocol.
type (
	messageItem struct {
		Type    string `json:"type"` // message
		Role    string `json:"role"`
		Content []any  `json:"content"`
		Phase   string `json:"phase,omitempty"` // the model's word for what its text is for
	}
	textPartItem struct {
		Type string `json:"type"` // input_text, output_text
		Text string `json:"text"`
	}
	imagePartItem struct {
		Type     string `json:"type"` // input_image
		ImageURL string `json:"image_url"`
	}
	callItem struct {
		Type      string `json:"type"` // function_call
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	resultItem struct {
		Type   string `json:"type"` // function_call_output
		CallID string `json:"call_id"`
		Output string `json:"output"`
	}
)

// reasoningItem is what a model has thought, as it is sent back. Text of it is for
// readers; the part that counts is encrypted, or stands in the content of models whose thoughts
// are open.
type reasoningItem struct {
	Type      string        `json:"type"` // reasoning
	ID        string        `json:"id,omitempty"`
	Summary   []contentPart `json:"summary"`
	Content   []contentPart `json:"content,omitempty"`
	Encrypted string        `json:"encrypted_content,omitempty"`
}

// encodeItems is a message as it is sent: the items it has in this protocol, with
// commas between; nothing when it has no content.
func encodeItems(message llm.Message) ([]byte, error) {
	items := userItems(message.Blocks)
	if message.Role == llm.Assistant {
		items = assistantItems(message.Blocks)
	}
	encoded := make([][]byte, len(items))
	for i, item := range items {
		var err error
		if encoded[i], err = json.Marshal(item); err != nil {
			return nil, err
		}
	}
	return bytes.Join(encoded, []byte{','}), nil
}

// userItems puts results of tools first, as they follow their calls, and the images of
// results behind all of them: not every server of the protocol takes images in results.
func userItems(blocks []llm.Block) []any {
	var items, content []any
	for _, block := range blocks {
		switch block.Type {
		case llm.ToolResultBlock:
			items = append(items, resultItem{Type: "function_call_output", CallID: block.ToolCallID, Output: resultText(block)})
			if len(block.Images) > 0 {
				content = append(content, textPartItem{"input_text", imagesOf(block)})
				content = append(content, imageItems(block.Images)...)
			}
		case llm.ImageBlock:
			content = append(content, imageItems(block.Images)...)
		case llm.TextBlock:
			if strings.TrimSpace(block.Text) != "" {
				content = append(content, textPartItem{"input_text", block.Text})
			}
		}
	}
	if len(content) > 0 {
		items = append(items, messageItem{Type: "message", Role: sdk.ChatMessageRoleUser, Content: content})
	}
	return items
}

func imageItems(images []llm.Image) []any {
	var items []any
	for _, image := range images {
		items = append(items, imagePartItem{"input_image", dataURL(image)})
	}
	return items
}

// assistantItems keeps the order in which the model has thought, spoken and called. The
// API refuses reasoning that nothing follows.
func assistantItems(blocks []llm.Block) []any {
	var items []any
	for _, block := range blocks {
		switch block.Type {
		case llm.TextBlock:
			if strings.TrimSpace(block.Text) != "" {
				items = append(items, saidItem(block))
			}
		case llm.ReasoningBlock:
			if thought := json.RawMessage(block.Signature); isReasoning(thought) {
				items = append(items, thought)
			}
		case llm.ToolUseBlock:
			items = append(items, callItem{
				Type: "function_call", CallID: block.ToolCallID, Name: wire.SentName(block.ToolName),
				Arguments: string(wire.SentBack(block.Input)),
			})
		}
	}
	for len(items) > 0 {
		if _, thought := items[len(items)-1].(json.RawMessage); !thought {
			break
		}
		items = items[:len(items)-1]
	}
	return items
}

// saidItem is a text of the model's.
func saidItem(block llm.Block) messageItem {
	item := messageItem{Type: "message", Role: sdk.ChatMessageRoleAssistant, Content: []any{textPartItem{"output_text", block.Text}}}
	if phase, given := strings.CutPrefix(block.Signature, phasePrefix); given {
		item.Phase = phase
	}
	return item
}

// isReasoning reports whether a signature is an item of this protocol; other vendors
// sign with other texts.
func isReasoning(signature json.RawMessage) bool {
	return bytes.HasPrefix(signature, []byte(`{"type":"reasoning"`)) && json.Valid(signature)
}
