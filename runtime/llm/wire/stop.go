package wire

import (
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// Stop is the meaning of a vendor's word for why a model stopped, and the word itself
// where the meaning says less. Text behind a colon is a detail: Google's endpoint
// for Chat Completions says "content_filter: RECITATION". That a model calls tools is an
// end like others here: some vendors have no word for it.
func Stop(word string) (reason llm.StopReason, said string) {
	name, _, _ := strings.Cut(word, ":")
	reason = stopNamed(strings.ToLower(strings.TrimSpace(name)))
	if reason == llm.StopEnd || reason == llm.StopMaxTokens || word == string(llm.StopRefusal) {
		return reason, ""
	}
	return reason, cut(word)
}

// stopNamed reads the words of the vendors. Sources: "Chat Completions" and "Responses" in
// OpenAI's reference, FinishReason in Google's of the Gemini API, the references of
// DeepSeek, Together, Zhipu, vLLM and Hugging Face's inference server.
func stopNamed(word string) llm.StopReason {
	switch word {
	case "stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "tool_calls", "tool_use", "function_call":
		return llm.StopEnd
	case "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return llm.StopMaxTokens
	case "refusal", "content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii", "sensitive",
		"image_safety", "image_prohibited_content", "image_recitation":
		return llm.StopRefusal
	case "function_call_filter", "malformed_function_call", "unexpected_tool_call", "too_many_tool_calls", "malformed_response",
		"insufficient_system_resource", "network_error", "error", "abort":
		return llm.StopFailed
	}
	return llm.StopOther
}
