package openai

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// errorMark stands before the text of a failed tool call: the protocol has no
// field that says so.
const errorMark = "Error: "

// noOutput stands for an empty tool result, which the protocol does not allow.
const noOutput = "(no output)"

// noAnswer stands for an answer without a text or a call: templates of models that run
// locally refuse two messages of the user after each other.
const noAnswer = "(no answer)"

// encode translates a request to the provider at base, but for what is said in
// it, which [encodeSystem] and [encodeMessage] do, and for [caching].
func encode(req llm.Request, base string) (sdk.ChatCompletionRequest, error) {
	out := sdk.ChatCompletionRequest{
		Model:         req.Model,
		Messages:      []sdk.ChatCompletionMessage{},
		StreamOptions: &sdk.StreamOptions{IncludeUsage: true},
	}
	if wantsCompletionTokens(base, req.Model) {
		out.MaxCompletionTokens = req.MaxTokens
	} else {
		out.MaxTokens = req.MaxTokens //nolint:staticcheck // deprecated by OpenAI only; the others know no other name
	}
	for _, tool := range req.Tools {
		schema, err := wire.Schema(tool)
		if err != nil {
			return out, err
		}
		out.Tools = append(out.Tools, sdk.Tool{
			Type:     sdk.ToolTypeFunction,
			Function: &sdk.FunctionDefinition{Name: tool.Name, Description: tool.Description, Parameters: schema},
		})
	}
	out.ReasoningEffort = req.Effort
	if len(out.Tools) > 0 && (req.Model == sdk.GPT6Sol || req.Model == sdk.GPT6Luna) {
		// These call functions over this API only without reasoning.
		out.ReasoningEffort = sdk.ReasoningEffortNone
	}
	return out, nil
}

// wantsCompletionTokens reports whether the output allowance is sent as
// max_completion_tokens. OpenAI has replaced max_tokens by it and its reasoning
// models refuse the old name; most other providers know only the old one.
func wantsCompletionTokens(base, model string) bool {
	if Official(base) {
		return true
	}
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, prefix) {
			return true
		}
	}
	return false
}

// encodeSystem is the message that carries the system prompt, or none.
func encodeSystem(text string) ([]byte, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	return json.Marshal(sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleSystem, Content: text})
}

// encodeMessage is a message as it is sent: none, one or several of the
// vendor's, with commas between.
func encodeMessage(message llm.Message) ([]byte, error) {
	if message.Role == llm.Assistant {
		return encodeAssistant(message.Blocks)
	}
	parts := encodeUser(message.Blocks)
	if len(parts) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(parts)
	if err != nil {
		return nil, err
	}
	return list[1 : len(list)-1], nil // without the brackets
}

// encodeUser puts tool results first, each as a message of its own: they must
// follow the calls directly. Such a message holds text only, so the images of
// results come behind all of them, in the user's words.
func encodeUser(blocks []llm.Block) []sdk.ChatCompletionMessage {
	var out []sdk.ChatCompletionMessage
	var texts []string
	var images []sdk.ChatMessagePart
	for _, block := range blocks {
		switch block.Type {
		case llm.ToolResultBlock:
			out = append(out, sdk.ChatCompletionMessage{
				Role: sdk.ChatMessageRoleTool, ToolCallID: block.ToolCallID, Content: resultText(block),
			})
			if len(block.Images) > 0 {
				images = append(images, textPart(imagesOf(block)))
				images = append(images, imageParts(block.Images)...)
			}
		case llm.ImageBlock:
			images = append(images, imageParts(block.Images)...)
		case llm.TextBlock:
			texts = append(texts, block.Text)
		}
	}
	text := strings.Join(texts, "\n\n")
	said := strings.TrimSpace(text) != ""
	switch {
	case len(images) > 0:
		if said {
			images = append(images, textPart(text))
		}
		out = append(out, sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleUser, MultiContent: images})
	case said:
		out = append(out, sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleUser, Content: text})
	}
	return out
}

func textPart(text string) sdk.ChatMessagePart {
	return sdk.ChatMessagePart{Type: sdk.ChatMessagePartTypeText, Text: text}
}

// imageParts are images as data URLs.
func imageParts(images []llm.Image) []sdk.ChatMessagePart {
	var parts []sdk.ChatMessagePart
	for _, image := range images {
		parts = append(parts, sdk.ChatMessagePart{
			Type: sdk.ChatMessagePartTypeImageURL, ImageURL: &sdk.ChatMessageImageURL{URL: dataURL(image)},
		})
	}
	return parts
}

func dataURL(image llm.Image) string {
	return "data:" + image.MediaType + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
}

// imagesOf stands before the images of a result.
func imagesOf(result llm.Block) string {
	return "Images of the result of call " + result.ToolCallID + ":"
}

func resultText(block llm.Block) string {
	text := block.Text
	if strings.TrimSpace(text) == "" {
		text = noOutput
	}
	if block.IsError {
		return errorMark + text
	}
	return text
}

// assistantMessage is what a model has said, with what Google adds: the library's
// types have no field for that.
type assistantMessage struct {
	Role             string          `json:"role"`
	Content          string          `json:"content,omitempty"`
	ReasoningContent string          `json:"reasoning_content,omitempty"`
	Reasoning        string          `json:"reasoning,omitempty"`
	Details          json.RawMessage `json:"reasoning_details,omitempty"`
	Extra            *extraContent   `json:"extra_content,omitempty"`
	ToolCalls        []assistantCall `json:"tool_calls,omitempty"`
}

type assistantCall struct {
	sdk.ToolCall
	Extra *extraContent `json:"extra_content,omitempty"`
}

// encodeAssistant is one message, or none when nothing is left to say.
// Reasoning is given back only beside tool calls, where DeepSeek demands it, in the field
// that it came in, or in the details that OpenRouter has signed; other signatures would
// make it another vendor's.
func encodeAssistant(blocks []llm.Block) ([]byte, error) {
	message := assistantMessage{Role: sdk.ChatMessageRoleAssistant}
	var texts, content, reasoning []string
	for _, block := range blocks {
		switch block.Type {
		case llm.TextBlock:
			texts = append(texts, block.Text)
			message.Extra = cmp.Or(signed(block.Signature), message.Extra)
		case llm.ReasoningBlock:
			switch own := detailsOf(block.Signature); {
			case block.Signature == signatureOf(fieldReasoningContent):
				content = append(content, block.Text)
			case block.Signature == signatureOf(fieldReasoning):
				reasoning = append(reasoning, block.Text)
			case own != nil:
				message.Details = own
			}
		case llm.ToolUseBlock:
			message.ToolCalls = append(message.ToolCalls, assistantCall{
				ToolCall: sdk.ToolCall{
					ID:       block.ToolCallID,
					Type:     sdk.ToolTypeFunction,
					Function: sdk.FunctionCall{Name: wire.SentName(block.ToolName), Arguments: string(wire.SentBack(block.Input))},
				},
				Extra: signed(block.Signature),
			})
		}
	}
	if text := strings.Join(texts, "\n\n"); strings.TrimSpace(text) != "" {
		message.Content = text
	}
	if len(message.ToolCalls) > 0 {
		message.ReasoningContent, message.Reasoning = strings.Join(content, "\n\n"), strings.Join(reasoning, "\n\n")
	}
	if message.Content == "" && len(message.ToolCalls) == 0 {
		message.Content = noAnswer
	}
	return json.Marshal(message)
}
