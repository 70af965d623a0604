package mirror

import (
	"encoding/json"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
)

// TestArguments: arguments are sent as the model wrote them, also numbers that no float holds.
func TestArguments(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"id":9007199254740993,"big":12345678901234567890}`: `{"big":12345678901234567890,"id":9007199254740993}`,
		`{"a":{"b":[1e3,0.1]}}`:                              `{"a":{"b":[1e3,0.1]}}`,
		`[1]`:                                                `{"input":"[1]"}`,
		`null`:                                               `{"input":"null"}`,
		`{"a":1} {"b":2}`:                                    `{"input":"{\"a\":1} {\"b\":2}"}`,
		``:                                                   `{"input":""}`,
	} {
		sent := (&Mirror{}).cleaned(langgraph.Message{ToolCalls: []langgraph.ToolCall{{Args: args(json.RawMessage(given))}}})
		if got, err := json.Marshal(sent.ToolCalls[0].Args); err != nil || string(got) != want {
			t.Errorf("%s: %s (%v), want %s", given, got, err, want)
		}
	}
}
