package item_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func TestBeginAndEnd(t *testing.T) {
	t.Parallel()
	const text = "aé€😀" // characters of one, two, three and four bytes
	for n, want := range []struct{ begin, end string }{
		0: {"", ""}, 1: {"a", ""}, 2: {"a", ""}, 3: {"aé", ""}, 4: {"aé", "😀"}, 5: {"aé", "😀"},
		6: {"aé€", "😀"}, 7: {"aé€", "€😀"}, 8: {"aé€", "€😀"}, 9: {"aé€", "é€😀"}, 10: {text, text}, 11: {text, text},
	} {
		if begin, end := item.Begin(text, n), item.End(text, n); begin != want.begin || end != want.end {
			t.Errorf("%d bytes: %q and %q, want %q and %q", n, begin, end, want.begin, want.end)
		}
	}
	if item.Begin(text, -1) != "" || item.End(text, -1) != "" {
		t.Error("less than nothing is something")
	}
}

// Bytes that are no text are cut where they are asked for: nobody goes through all of them.
func TestCutsOfNoText(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("\x80", 100)
	if item.Begin(text, 50) != text[:50] || item.End([]byte(text), 50) == nil || item.End(text, 50) != text[:50] || item.Start(text, 50) != 50 {
		t.Error("bytes are lost")
	}
}

func FuzzCuts(f *testing.F) {
	f.Add("aé€😀", 5)
	f.Add("\x80\x80\x80\x80\x80", 2)
	f.Fuzz(func(t *testing.T, text string, n int) {
		begin, end := item.Begin(text, n), item.End(text, n)
		if !strings.HasPrefix(text, begin) || !strings.HasSuffix(text, end) || max(len(begin), len(end)) > max(0, n) {
			t.Errorf("%q and %q", begin, end)
		}
		if utf8.ValidString(text) && (!utf8.ValidString(begin) || !utf8.ValidString(end) || n >= 0 && n <= len(text) && min(len(begin), len(end)) <= n-utf8.UTFMax) {
			t.Errorf("%q and %q", begin, end)
		}
	})
}
