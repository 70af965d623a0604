package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// extraContent is where Google's endpoint puts the signature of the thoughts
// that led to a tool call, and expects it back: without it, Gemini 3 refuses
// the conversation. Source: "Thought signatures" in Google's Gemini API guide.
type extraContent struct {
	Google struct {
		ThoughtSignature string `json:"thought_signature"`
	} `json:"google"`
}

// signatures are those of a conversation's tool calls, by call id.
func signatures(messages []llm.Message) map[string]string {
	out := map[string]string{}
	for _, message := range messages {
		for _, block := range message.Blocks {
			if block.Type == llm.ToolUseBlock && block.Signature != "" {
				out[block.ToolCallID] = block.Signature
			}
		}
	}
	return out
}

// addSignatures puts signatures into the body of req; the library's types have
// no field for them.
func addSignatures(req *http.Request, signatures map[string]string) error {
	if len(signatures) == 0 {
		return nil
	}
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return fmt.Errorf("read the encoded request: %w", err)
	}
	signed, err := signCalls(raw, signatures)
	if err != nil {
		return fmt.Errorf("add thought signatures: %w", err)
	}
	wire.SetBody(req, signed)
	return nil
}

// object is a JSON object of which only some members matter here.
type object map[string]json.RawMessage

func signCalls(raw []byte, signatures map[string]string) ([]byte, error) {
	var body object
	var messages []object
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body["messages"], &messages); err != nil {
		return nil, err
	}
	for _, message := range messages {
		if message["tool_calls"] == nil {
			continue
		}
		var calls []object
		if err := json.Unmarshal(message["tool_calls"], &calls); err != nil {
			return nil, err
		}
		for _, call := range calls {
			if err := sign(call, signatures); err != nil {
				return nil, err
			}
		}
		encoded, err := json.Marshal(calls)
		if err != nil {
			return nil, err
		}
		message["tool_calls"] = encoded
	}
	encoded, err := json.Marshal(messages)
	if err != nil {
		return nil, err
	}
	body["messages"] = encoded
	return json.Marshal(body)
}

func sign(call object, signatures map[string]string) error {
	var id string
	if err := json.Unmarshal(call["id"], &id); err != nil {
		return err
	}
	signature, ok := signatures[id]
	if !ok {
		return nil
	}
	var extra extraContent
	extra.Google.ThoughtSignature = signature
	encoded, err := json.Marshal(extra)
	if err != nil {
		return err
	}
	call["extra_content"] = encoded
	return nil
}
