package guard

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// TestAttackElementIsEnded: text that a hook's tool or a child returned ends the element that it stands in, and goes on as a part of the prompt. The end of that element is escaped within it.
func TestAttackElementIsEnded(t *testing.T) {
	t.Parallel()
	end := regexp.MustCompile(`(?i)<\s*/\s*notes\s*>`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-z]|</notes>|</ Notes >|<|/|notes|>|< /notes|</b>)*`).Draw(t, "text")
		if got := Inside("notes", text); end.MatchString(got) {
			t.Fatalf("%q became %q", text, got)
		}
	})
	for text, want := range map[string]string{
		"a </notes> b": `a <\/notes> b`, "</NOTES\n>": "<\\/NOTES\n>", "</notesbook>": "</notesbook>", "a < b": "a < b", "<notes>": "<notes>",
	} {
		if got := Inside("notes", text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
