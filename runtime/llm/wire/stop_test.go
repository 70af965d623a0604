package wire

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// TestStop: only a word that is known for it is the end of a whole answer.
func TestStop(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]struct {
		reason llm.StopReason
		said   string
	}{
		"stop": {llm.StopEnd, ""}, "STOP": {llm.StopEnd, ""}, "eos": {llm.StopEnd, ""}, "tool_calls": {llm.StopEnd, ""},
		"length": {llm.StopMaxTokens, ""}, "MAX_TOKENS": {llm.StopMaxTokens, ""},
		"refusal":                    {llm.StopRefusal, ""},
		"content_filter":             {llm.StopRefusal, "content_filter"},
		"content_filter: RECITATION": {llm.StopRefusal, "content_filter: RECITATION"},
		"SAFETY":                     {llm.StopRefusal, "SAFETY"},
		"SPII":                       {llm.StopRefusal, "SPII"},
		"function_call_filter: MALFORMED_FUNCTION_CALL": {llm.StopFailed, "function_call_filter: MALFORMED_FUNCTION_CALL"},
		"MALFORMED_FUNCTION_CALL":                       {llm.StopFailed, "MALFORMED_FUNCTION_CALL"},
		"insufficient_system_resource":                  {llm.StopFailed, "insufficient_system_resource"},
		"a_new\nword":                                   {llm.StopOther, "a_new word"},
		"stopped":                                       {llm.StopOther, "stopped"},
		"":                                              {llm.StopOther, ""},
	} {
		if reason, said := Stop(word); reason != want.reason || said != want.said {
			t.Errorf("%q: %s, %q", word, reason, said)
		}
	}
	if _, said := Stop(strings.Repeat("x", 1<<20)); len(said) > maxMessage+len("…") {
		t.Errorf("%d bytes are kept of a word", len(said))
	}
}
