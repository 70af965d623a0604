package openai

import "strings"

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
