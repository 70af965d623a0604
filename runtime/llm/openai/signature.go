package openai

import (
	"fmt"
	"strings"
)

// extraContent is where Google's endpoint puts the signature of the thoughts
// that led to a tool call, and expects it back: without it, Gemini 3 refuses
// the conversation. An answer without calls has one beside its text. Source:
// "Thought signatures" in Google's Gemini API guide.
type extraContent struct {
	Google struct {
		ThoughtSignature string `json:"thought_signature"`
	} `json:"google"`
}

// phasePrefix tells what a model of Responses calls its text from the signature of
// Google's.
const phasePrefix = "phase:"

// signed carries a signature back; nil when there is none.
func signed(signature string) *extraContent {
	if signature == "" || strings.HasPrefix(signature, phasePrefix) {
		return nil
	}
	var extra extraContent
	extra.Google.ThoughtSignature = signature
	return &extra
}

// signature is what a vendor has signed with, empty where it has not.
func (e *extraContent) signature() string {
	if e == nil {
		return ""
	}
	return e.Google.ThoughtSignature
}

// The fields in which providers of this protocol send what was thought. Each takes it back
// in its own: DeepSeek demands that beside calls, Groq and Cerebras refuse the other.
const (
	fieldReasoningContent = "reasoning_content" // DeepSeek, vLLM, xAI
	fieldReasoning        = "reasoning"         // OpenRouter, Ollama, Groq, Cerebras
)

// signatureOf tells the field from the signatures of vendors, which are other texts; it is
// empty for the usual one. No other protocol takes an object for a signature of its own.
func signatureOf(field string) string {
	if field == "" || field == fieldReasoningContent {
		return ""
	}
	return fmt.Sprintf(`{"field":%q}`, field)
}
