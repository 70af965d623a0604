package openai

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm/llmtest"
)

// TestAttackManyChoices: a provider of the OpenAI protocol sends events whose lists decode to many times their size.
// An event with more values than any answer has is refused before it is decoded.
func TestAttackManyChoices(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	llmtest.HugeEvents(t, New, `data: {"choices":`, "}")
}

// TestAttackManyCalls: an answer consists of millions of calls with nothing in them, each of which is looked for among all.
// It is refused at ten thousand.
func TestAttackManyCalls(t *testing.T) {
	t.Parallel()
	var a answer
	for i := range maxCalls + 1 {
		var part callPart
		if err := json.Unmarshal(fmt.Appendf(nil, `{"index":%d}`, i), &part); err != nil {
			t.Fatal(err)
		}
		if err := a.call(part); (err != nil) != (i == maxCalls) {
			t.Fatalf("call %d: %v", i, err)
		}
	}
}
