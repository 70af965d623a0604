package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// What a terminal obeys stands in JSON as escapes, and reads back as it was.
func TestWriteJSONUnseen(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "plain <&> é 日本 😀\n\t", "\x1b[2J\x7f", "\u009b2J", "a\u202eb\u2066c\u200d", "\U000e0041", "\\\u0085"} {
		var b bytes.Buffer
		if err := writeJSON(&b, map[string]string{text: text}); err != nil {
			t.Fatal(err)
		}
		var back map[string]string
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || back[text] != text {
			t.Errorf("%q came back as %q, %v", text, back, err)
		}
		if strings.ContainsAny(b.String(), "\x1b\x7f\u0085\u009b\u202e\u2066\U000e0041") {
			t.Errorf("%q: %q", text, b.String())
		}
	}
}
