package anthropic_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/llm/anthropic"
	"github.com/rye-mcp/rye-mcp/runtime/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Run(t, anthropic.New, llmtest.Anthropic)
}

func TestStablePrefix(t *testing.T) {
	t.Parallel()
	llmtest.StablePrefix(t, anthropic.New, llmtest.Anthropic)
}
