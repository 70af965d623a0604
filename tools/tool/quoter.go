package tool

// Quoter is implemented by results of which only a text becomes part of a prompt, when a
// hook of a context event has asked for them. An empty one adds nothing.
type Quoter interface {
	// ForPrompt is that text. It is bounded, and what strangers said in it stands in
	// elements that they cannot end.
	ForPrompt() string
}
