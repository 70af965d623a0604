package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// SentBack is the input of an earlier tool call as a vendor accepts it in a
// conversation: a JSON object. Models sometimes write something else; it is
// then given back as text inside an object, so that the model sees its mistake
// and the conversation can go on.
func SentBack(input json.RawMessage) json.RawMessage {
	trimmed := bytes.TrimSpace(input)
	if len(trimmed) == 0 {
		return json.RawMessage("{}")
	}
	if trimmed[0] == '{' && json.Valid(trimmed) {
		return trimmed
	}
	wrapped, err := json.Marshal(map[string]string{"invalid_json": string(input)})
	if err != nil { // a map of strings always encodes
		return json.RawMessage("{}")
	}
	return wrapped
}

// Schema is the schema of a tool's input as every vendor accepts it; a tool
// without one takes no parameters.
func Schema(tool llm.Tool) (json.RawMessage, error) {
	if len(bytes.TrimSpace(tool.Schema)) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	if !json.Valid(tool.Schema) {
		return nil, fmt.Errorf("the schema of tool %q is not JSON", tool.Name)
	}
	return tool.Schema, nil
}
