package inputs

import (
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// placeholder matches {input:key}, {input:key?}, {input:key:default},
// {input:key|default} and {env:NAME}. A default holds no braces, so that a
// placeholder never reaches into the next one.
var placeholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`\{input:([A-Za-z0-9_.-]+)(\?|[:|][^{}]*)?\}|\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
})

// Interpolate puts inputs and environment values into text. A missing or null
// input leaves {input:key} as it stands, {input:key?} empty, and the two other
// forms at their default. {env:NAME} is replaced for the names in env only,
// which is therefore the allow-list. Values that are not strings appear as
// compact JSON. Text that came in through a value is never looked at again.
func Interpolate(text string, inputs map[string]any, env map[string]string) string {
	var out strings.Builder
	done := 0
	for _, m := range placeholder().FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(text[done:m[0]])
		done = m[1]
		group := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return text[m[2*n]:m[2*n+1]]
		}
		out.WriteString(replacement(text[m[0]:m[1]], group(1), group(2), group(3), inputs, env))
	}
	out.WriteString(text[done:])
	return out.String()
}

// replacement returns what stands in for one placeholder: of the input key with
// what follows it (fallback), or of the environment value name.
func replacement(whole, key, fallback, name string, inputs map[string]any, env map[string]string) string {
	if name != "" {
		if value, ok := env[name]; ok {
			return value
		}
		return whole
	}
	if value := inputs[key]; value != nil {
		return item.Text(value)
	}
	switch fallback {
	case "":
		return whole
	case "?":
		return ""
	}
	return fallback[1:] // behind ":" or "|"
}
