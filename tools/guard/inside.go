package guard

import (
	"regexp"
	"strings"
)

// Inside is a text that can stand in an element of that name without ending it:
// what looks like the end of the element gets a backslash, <\/name>.
func Inside(name, text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	end := regexp.MustCompile(`(?i)<(\s*/\s*` + regexp.QuoteMeta(name) + `\b)`)
	return end.ReplaceAllString(text, `<\$1`)
}
