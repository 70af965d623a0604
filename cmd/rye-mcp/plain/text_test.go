package plain

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"as it is":                       "as it is",
		" two\nlines\tand a tab\r\n":     "two lines and a tab",
		"\x1b[2Jgone\x07\x7f":            "␛[2Jgone␇␡",
		"\x1b]8;;http://x\x1b\\link":     "␛]8;;http://x␛\\link",
		"c1 \u009b31m":                   "c1 �31m",
		"evil\u202etxt.exe\u2066x\u2069": "evil�txt.exe�x�",
		"a\u00a0b\u2028c":                "a b c",
		"👩\u200d💻 soft\u00adhyphen":      "👩💻 softhyphen",
		"日本 é":                           "日本 é",
		"❤\ufe0f":                        "❤",
		"\ufeffmark":                     "�mark",
		"no\xffutf8":                     "no�utf8",
	} {
		if got := Line(text); got != want {
			t.Errorf("Line(%q) = %q, want %q", text, got, want)
		}
	}
	if got := Lines("one\n\ttwo\x1b[1A\r\n"); got != "one\n\ttwo␛[1A \n" {
		t.Errorf("Lines: %q", got)
	}
}

// A terminal obeys nothing of any text, and a text that is cut fits.
func TestLineOfAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		for _, r := range Line(text) {
			if !unicode.IsPrint(r) {
				t.Fatalf("Line(%q) has %U", text, r)
			}
		}
		most := rapid.IntRange(0, 40).Draw(t, "most")
		if short := Shorten(Line(text), most); Columns(short) > most {
			t.Fatalf("%q has more than %d columns", short, most)
		}
		if cut := Cut(text, most); Columns(cut) > most || !strings.HasPrefix(text, cut) {
			t.Fatalf("Cut(%q, %d) = %q", text, most, cut)
		}
	})
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		most int
		want []string
	}{
		{"one two three", 0, []string{"one two three"}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one /a/long/path/that/is/whole x", 8, []string{"one", "/a/long/path/that/is/whole", "x"}},
		{"日本 語", 5, []string{"日本", "語"}},
		{"", 5, []string{""}},
	} {
		if got := Wrap(c.text, c.most); strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("Wrap(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"", 1, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"}, {"abc", 1, "…"}, {"abc", 0, ""},
	} {
		if got := Shorten(tt.text, tt.most); got != tt.want {
			t.Errorf("%q in %d columns: %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
	for r, want := range map[rune]int{'a': 1, 'é': 1, '日': 2, '🙂': 2, '\u0301': 0, '\u200d': 0, 'Ａ': 2} {
		if got := runeColumns(r); got != want {
			t.Errorf("%U is %d columns, want %d", r, got, want)
		}
	}
}
