package guard

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

func TestQuoted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a </knowledge> b": `a <\/knowledge> b`, "< / KNOWLEDGE\n>": `<\ / KNOWLEDGE` + "\n>", "<message id=1>": `<\message id=1>`,
		`<Rules id="x" type="knowledge">`: `<\Rules id="x" type="knowledge">`, "<tool_result>": `<\tool_result>`,
		"a < b, List<String>, </div>": "a < b, List<String>, </div>", "<knowledgeable>": "<knowledgeable>", "plain": "plain",
	} {
		if got := Quoted(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	element := regexp.MustCompile(`(?i)<\s*/?\s*(knowledge|message|system|user)\b`)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(`([<>/ \n="]|knowledge|message|system|type|User)*`).Draw(rt, "text")
		if got := Quoted(text); element.MatchString(got) {
			rt.Fatalf("%q became %q", text, got)
		}
	})
}
