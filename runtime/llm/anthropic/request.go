package anthropic

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// encode translates what of a request no other call has: what stands around the
// messages is in its [frame], and those are encoded when they are new.
func encode(req llm.Request) sdk.MessageNewParams {
	return sdk.MessageNewParams{
		Model: req.Model, MaxTokens: int64(req.MaxTokens), Messages: []sdk.MessageParam{},
		OutputConfig: sdk.OutputConfigParam{Effort: sdk.OutputConfigEffort(req.Effort)},
	}
}

// frame keeps what requests of a conversation have in common beside their messages, as
// members of the request with a comma behind each. Tools are recognised by their array,
// which must not be changed once it was sent.
type frame struct {
	mu     sync.Mutex
	system string
	tools  []llm.Tool
	text   []byte // nil before the first request
}

func (f *frame) encode(system string, tools []llm.Tool) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.text != nil && f.system == system && len(f.tools) == len(tools) && unsafe.SliceData(f.tools) == unsafe.SliceData(tools) {
		return f.text, nil
	}
	text, err := encodeFrame(system, tools)
	if err != nil {
		return nil, err
	}
	f.system, f.tools, f.text = system, tools, text
	return text, nil
}

func encodeFrame(system string, tools []llm.Tool) ([]byte, error) {
	text := []byte{}
	if strings.TrimSpace(system) != "" {
		block, err := sdk.TextBlockParam{Text: system, CacheControl: sdk.NewCacheControlEphemeralParam()}.MarshalJSON()
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, `"system":[%s],`, block)
	}
	if len(tools) == 0 {
		return text, nil
	}
	list := make([][]byte, len(tools))
	for i, tool := range tools {
		param, err := encodeTool(tool)
		if err != nil {
			return nil, err
		}
		if i == len(tools)-1 {
			param.CacheControl = sdk.NewCacheControlEphemeralParam()
		}
		if list[i], err = param.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	return fmt.Appendf(text, `"tools":[%s],`, bytes.Join(list, []byte{','})), nil
}

// A request marks four places for caching, which is as many as the API accepts: the
// system prompt, the last tool, and the last two user messages. The last one makes this
// call's prefix cheap for the next call, the one before finds what the call before has
// written.
const (
	markedMessages = 2
	mark           = `,"cache_control":{"type":"ephemeral"}`
)

// userEnd is how a user message ends, from the brace of its last block on: a mark stands
// before it. All blocks that can be the last have one.
const userEnd = `}],"role":"user"}`

// marked is the text of messages, of which each ends somewhere, with its marks, in parts.
func marked(messages []llm.Message, text []byte, ends []int) [][]byte {
	var at []int
	for i := len(messages) - 1; i >= 0 && len(at) < markedMessages; i-- {
		if messages[i].Role == llm.User && ends[i] > 0 && (i == 0 || ends[i] > ends[i-1]) {
			at = append(at, ends[i]-len(userEnd))
		}
	}
	var parts [][]byte
	from := 0
	for _, to := range slices.Backward(at) {
		parts = append(parts, text[from:to], []byte(mark))
		from = to
	}
	return append(parts, text[from:])
}

// encodeMessage is a message as it is sent, without a mark; nothing when it has no
// content, which the API refuses.
func encodeMessage(message llm.Message) ([]byte, error) {
	blocks := encodeBlocks(message.Blocks)
	if len(blocks) == 0 {
		return nil, nil
	}
	text := []byte(`{"content":[`)
	for i, block := range blocks {
		encoded, err := block.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, encoded...)
	}
	return fmt.Appendf(text, `],"role":%q}`, message.Role), nil
}

func encodeTool(tool llm.Tool) (sdk.ToolParam, error) {
	schema, err := wire.Schema(tool)
	if err != nil {
		return sdk.ToolParam{}, err
	}
	out := sdk.ToolParam{
		Name: tool.Name,
		// Sent as it stands: the library's struct knows only a part of JSON Schema.
		InputSchema: param.Override[sdk.ToolInputSchemaParam](schema),
	}
	if tool.Description != "" {
		out.Description = param.NewOpt(tool.Description)
	}
	return out, nil
}

// encodeBlocks leaves out what the API refuses: text without a visible
// character, reasoning without a signature or with JSON for one (another vendor's), and reasoning that nothing follows, with which an answer that was cut off ends.
func encodeBlocks(blocks []llm.Block) []sdk.ContentBlockParamUnion {
	var out, behind []sdk.ContentBlockParamUnion
	for _, block := range blocks {
		switch block.Type {
		case llm.TextBlock:
			if strings.TrimSpace(block.Text) != "" {
				out = append(out, sdk.NewTextBlock(block.Text))
			}
		case llm.ReasoningBlock:
			if data, redacted := strings.CutPrefix(block.Signature, redactedPrefix); redacted {
				out = append(out, sdk.NewRedactedThinkingBlock(data))
			} else if block.Signature != "" && !strings.ContainsAny(block.Signature[:1], "{[") {
				out = append(out, sdk.NewThinkingBlock(block.Signature, block.Text))
			}
		case llm.ToolUseBlock:
			out = append(out, sdk.NewToolUseBlock(block.ToolCallID, wire.SentBack(block.Input), wire.SentName(block.ToolName)))
		case llm.ToolResultBlock:
			out = append(out, encodeResult(block))
			if block.IsError {
				behind = append(behind, encodeImages(block.Images)...)
			}
		case llm.ImageBlock:
			out = append(out, encodeImages(block.Images)...)
		}
	}
	out = append(out, behind...)
	for len(out) > 0 && isReasoning(out[len(out)-1]) {
		out = out[:len(out)-1]
	}
	return out
}

func isReasoning(block sdk.ContentBlockParamUnion) bool {
	return block.OfThinking != nil || block.OfRedactedThinking != nil
}

// encodeResult is the result of a call. One that has failed may hold text only, so its
// images come behind all results.
func encodeResult(block llm.Block) sdk.ContentBlockParamUnion {
	result := sdk.ToolResultBlockParam{ToolUseID: block.ToolCallID}
	if block.IsError {
		result.IsError = param.NewOpt(true)
	}
	if strings.TrimSpace(block.Text) != "" {
		result.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: block.Text}}}
	}
	if !block.IsError {
		for _, image := range encodeImages(block.Images) {
			result.Content = append(result.Content, sdk.ToolResultBlockParamContentUnion{OfImage: image.OfImage})
		}
	}
	return sdk.ContentBlockParamUnion{OfToolResult: &result}
}

func encodeImages(images []llm.Image) []sdk.ContentBlockParamUnion {
	out := make([]sdk.ContentBlockParamUnion, len(images))
	for i, image := range images {
		out[i] = sdk.NewImageBlockBase64(image.MediaType, base64.StdEncoding.EncodeToString(image.Data))
	}
	return out
}
