package guard

import (
	"regexp"
	"strings"
	"sync"
)

// runtimeElements are the elements by which the runtime tells a model whose words it
// reads, and where something comes from.
var runtimeElements = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)<(\s*/?\s*(?:` + strings.Join([]string{
		"knowledge", "message", "conversation", "directive", "inputs", "returns", "permissions", "process", "success", "failure",
		"web_page", "search_results", "summary", "system", "user", "assistant", "human", "instructions?", "tool_?(?:call|result|use)s?",
		"function_?(?:call|result)s?",
	}, "|") + `)\b|[^<>]{0,200}\btype\s*=\s*["']?knowledge\b)`)
})

// Quoted is a text of somebody else that stands in an element of the runtime, without
// ending it or beginning another: what looks like one of them gets a backslash,
// <\knowledge>. It is what [Inside] is for one name.
func Quoted(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	return runtimeElements().ReplaceAllString(text, `<\$1`)
}
