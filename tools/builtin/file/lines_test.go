package file

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// text draws file contents with many equal lines, the hard case for ids.
func text() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for _, word := range rapid.SliceOfN(rapid.SampledFrom([]string{"", "}", "a", "b", "\t}", "c\r", "x y"}), 0, 40).Draw(t, "lines") {
			b.WriteString(word)
			b.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t, "end"))
		}
		b.WriteString(rapid.SampledFrom([]string{"", "tail"}).Draw(t, "tail"))
		return b.String()
	})
}

func TestSplitAndJoin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data := []byte(text().Draw(t, "text"))
		if got := join(splitLines(data)); !bytes.Equal(got, data) {
			t.Fatalf("%q became %q", data, got)
		}
	})
}

func TestLineIDsAreUniqueAndStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := splitLines([]byte(text().Draw(t, "text")))
		ids := lineIDs(lines)
		if len(ids) != len(lines) {
			t.Fatalf("%d ids for %d lines", len(ids), len(lines))
		}
		if !slices.Equal(ids, lineIDs(lines)) {
			t.Fatal("the same lines have other ids")
		}
		sorted := slices.Sorted(slices.Values(ids))
		if len(slices.Compact(sorted)) != len(ids) {
			t.Fatalf("ids repeat: %v", ids)
		}
	})
}

// An id taken before an edit means the same text after it, or nothing.
func TestOldIDsNeverNameOtherText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := splitLines([]byte(text().Draw(t, "text")))
		if len(before) == 0 {
			return
		}
		from := rapid.IntRange(0, len(before)-1).Draw(t, "from")
		to := rapid.IntRange(from, len(before)).Draw(t, "to")
		after := slices.Concat(before[:from], newLines(text().Draw(t, "new"), "\n"), before[to:])
		texts := make(map[string]string)
		for i, id := range lineIDs(before) {
			texts[id] = string(before[i].text)
		}
		for i, id := range lineIDs(after) {
			if old, ok := texts[id]; ok && old != string(after[i].text) {
				t.Fatalf("id %s named %q and names %q now", id, old, after[i].text)
			}
		}
	})
}

func TestUniqueLinesKeepTheirIDs(t *testing.T) {
	t.Parallel()
	before := lineIDs(splitLines([]byte("func a() {\n}\nfunc b() {\n}\n")))
	after := lineIDs(splitLines([]byte("// new\nfunc a() {\n\tx()\n}\nfunc b() {\n}\n")))
	if before[0] != after[1] || before[2] != after[4] {
		t.Errorf("unique lines: %v, then %v", before, after)
	}
	if before[1] == before[3] {
		t.Error("the two closing braces have one id")
	}
	if before[3] != after[5] {
		t.Errorf("the brace whose neighbours stayed: %v, then %v", before, after)
	}
	if slices.Contains(after, before[1]) {
		t.Errorf("the id of the brace whose neighbour changed is still in use: %v, then %v", before, after)
	}
	if crlf := lineIDs(splitLines([]byte("func a() {\r\n}\r\nfunc b() {\r\n}\r\n"))); !slices.Equal(crlf, before) {
		t.Errorf("line endings change ids: %v and %v", before, crlf)
	}
}

// With 24 bits, lines collide by accident in every large file.
func TestLargeFileHasUniqueIDs(t *testing.T) {
	t.Parallel()
	lines := make([]line, 60_000)
	for i := range lines {
		lines[i] = line{text: fmt.Appendf(nil, "line %d", i/2), end: "\n"}
	}
	ids := lineIDs(lines)
	slices.Sort(ids)
	if got := len(slices.Compact(ids)); got != len(lines) {
		t.Errorf("%d ids for %d lines", got, len(lines))
	}
}

func FuzzShow(f *testing.F) {
	f.Add([]byte("plain"), 3)
	f.Add([]byte(strings.Repeat("\xff", 2000)), 1000)
	f.Add([]byte(strings.Repeat("ä", 2000)), 0)
	f.Add([]byte("a"+strings.Repeat("ä", 2000)), 0)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		if got := cutText(text); !utf8.ValidString(got) || len(got) > 3*maxShown+100 {
			t.Errorf("cutText: %d bytes, valid %v", len(got), utf8.ValidString(got))
		}
		at = min(max(at, 0), len(text))
		if got := excerpt(text, at); !utf8.ValidString(got) {
			t.Errorf("excerpt is not UTF-8: %q", got)
		} else if utf8.Valid(text) && strings.Contains(got, "\uFFFD") && !bytes.Contains(text, []byte("\uFFFD")) {
			t.Errorf("excerpt cuts a character: %q", got)
		}
		if got := join(splitLines(text)); !bytes.Equal(got, text) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
