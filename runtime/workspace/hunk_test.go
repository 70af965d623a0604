package workspace

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHunkInWholeCharacters: a conflict that is long is shown up to a length, and no character
// is cut.
func TestHunkInWholeCharacters(t *testing.T) {
	t.Parallel()
	for lead := range 3 {
		text := "<<<<<<< a\n" + strings.Repeat("x", lead) + strings.Repeat("\u20ac", maxHunk) + "\n=======\n>>>>>>> b\n"
		if got := hunk(text); !utf8.ValidString(got) || !strings.HasSuffix(got, "\u20ac\u2026") || len(got) > maxHunk+len("\u2026") {
			t.Errorf("%d before: %d bytes, ends with %q", lead, len(got), got[max(0, len(got)-8):])
		}
	}
	if got := hunk("same\n<<<<<<< a\n1\n=======\n2\n>>>>>>> b\nsame\n"); got != "<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n" {
		t.Errorf("a short one: %q", got)
	}
}
