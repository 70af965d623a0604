package openai_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/llm/llmtest"
	"github.com/rye-mcp/rye-mcp/runtime/llm/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Run(t, openai.New, llmtest.OpenAI)
}

func TestResponsesConformance(t *testing.T) {
	t.Parallel()
	llmtest.Run(t, openai.NewResponses, llmtest.Responses)
}

func TestStablePrefix(t *testing.T) {
	t.Parallel()
	llmtest.StablePrefix(t, openai.New, llmtest.OpenAI)
}
