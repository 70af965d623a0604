package shell

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// clean is what an excerpt makes of a text that is not cut.
func clean(s string) string { return string([]rune(s)) }

// write writes s in pieces of n bytes.
func write(s string, n int) *excerpt {
	var e excerpt
	for len(s) > 0 {
		piece := s[:min(n, len(s))]
		if got, err := e.Write([]byte(piece)); got != len(piece) || err != nil {
			panic(fmt.Sprint(got, err))
		}
		s = s[len(piece):]
	}
	return &e
}

func TestExcerptLengths(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, halfBytes, halfBytes + 1, 2 * halfBytes} {
		text := strings.Repeat("x", n)
		if e := write(text, 4096); e.String() != text || e.Cut() {
			t.Errorf("%d bytes: changed", n)
		}
	}
	for _, more := range []int{1, 100, 2*halfBytes + 1, 1 << 20} {
		e := write(strings.Repeat("x", halfBytes)+strings.Repeat("-", more)+strings.Repeat("y", halfBytes), 4096)
		want := fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", strings.Repeat("x", halfBytes), more, strings.Repeat("y", halfBytes))
		if e.String() != want || !e.Cut() {
			t.Errorf("%d bytes too many: %d bytes, cut %v", more, len(e.String()), e.Cut())
		}
	}
}

func TestExcerptSplitsNoCharacter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat("x", rapid.IntRange(0, 5).Draw(t, "shift")) +
			strings.Repeat(rapid.SampledFrom([]string{"é", "€", "😀", "a€"}).Draw(t, "unit"), 40_000)
		got := write(text, rapid.IntRange(1000, 5000).Draw(t, "piece")).String()
		var left int
		before, after, ok := strings.Cut(got, "\n[… ")
		_, err := fmt.Sscanf(after, "%d bytes left out …]\n", &left)
		_, end, _ := strings.Cut(after, "…]\n")
		if !ok || err != nil || !strings.HasPrefix(text, before) || !strings.HasSuffix(text, end) ||
			len(before)+left+len(end) != len(text) || strings.ContainsRune(got, utf8.RuneError) {
			t.Fatalf("%d + %d + %d of %d bytes", len(before), left, len(end), len(text))
		}
		if len(before)+len(end) > 2*halfBytes || len(before)+len(end) < 2*halfBytes-2*utf8.UTFMax {
			t.Fatalf("%d bytes kept", len(before)+len(end))
		}
	})
}

// How a text is cut into writes makes no difference.
func FuzzExcerpt(f *testing.F) {
	f.Add([]byte("plain"), uint8(2))
	f.Add([]byte("a\xff\xfe😀\xf0\x9f\x98"), uint8(1))
	f.Add([]byte("\xe2\x82"), uint8(3))
	f.Add([]byte("\xf0\x9f\x98\xf0\x9f"), uint8(4))
	f.Fuzz(func(t *testing.T, text []byte, piece uint8) {
		got := write(string(text), int(piece)+1).String()
		if len(text) < halfBytes && got != clean(string(text)) {
			t.Errorf("%q, want %q", got, clean(string(text)))
		}
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
	})
}
