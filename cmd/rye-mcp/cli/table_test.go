package cli

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
)

func TestTable(t *testing.T) {
	t.Parallel()
	tab := table{header: []string{"ID", "NAME"}}
	tab.add(cell{"a-1", green}, text("short"))
	tab.add(text("b-22"), text("日本語 wide\x1b[31m\nname"))
	tab.add(text("ça"), text(""))
	var b strings.Builder
	if err := tab.write(display{out: &b}); err != nil {
		t.Fatal(err)
	}
	if want := "ID    NAME\na-1   short\nb-22  日本語 wide␛[31m name\nça    \n"; b.String() != want {
		t.Errorf("got\n%q, want\n%q", b.String(), want)
	}
	b.Reset()
	if err := tab.write(display{out: &b, width: 16, colors: true}); err != nil {
		t.Fatal(err)
	}
	if want := "\x1b[2mID\x1b[0m    \x1b[2mNAME\x1b[0m\n\x1b[32ma-1\x1b[0m   short\nb-22  日本語 wi…\nça    \n"; b.String() != want {
		t.Errorf("got\n%q, want\n%q", b.String(), want)
	}
}

// Every line of a table is as wide as the terminal at most unless the columns are at
// their least, the columns are aligned, and nothing but text is written.
func TestTableFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		width := rapid.IntRange(3*(minColumn+columnGap), 90).Draw(r, "width")
		tab := table{header: []string{"A", "B", "C"}}
		any := rapid.StringOf(rapid.RuneFrom([]rune("ab \t\x1b\n\u200b\u0301é日本🙂"), unicode.Latin, unicode.Han, unicode.Arabic))
		for range rapid.IntRange(0, 5).Draw(r, "rows") {
			tab.add(text(any.Draw(r, "a")), text(any.Draw(r, "b")), text("|"))
		}
		var b strings.Builder
		if err := tab.write(display{out: &b, width: width}); err != nil {
			r.Fatal(err)
		}
		bar := -1
		for i, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
			if plain.Columns(line) > width || strings.ContainsFunc(line, func(c rune) bool { return !unicode.IsPrint(c) }) {
				r.Errorf("line of %d columns in a terminal of %d: %q", plain.Columns(line), width, line)
			}
			if i == 0 {
				bar = plain.Columns(line) - 1
			} else if plain.Columns(line)-1 != bar || !strings.HasSuffix(line, "|") {
				r.Errorf("the last column of %q begins at %d, not %d", line, plain.Columns(line)-1, bar)
			}
		}
	})
}
