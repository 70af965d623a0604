package cli

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/system"
)

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ source, shown, colored string }{
		"headings": {
			"# One\n## Two\n### Three\ntext\n",
			"One\n===\n\nTwo\n---\n\nThree\n\ntext", "<b>One</>\n\n<b>Two</>\n\n<b>Three</>\n\ntext",
		},
		"paragraph": {
			"one two three four\nfive\n\nsix",
			"one two three four\nfive\n\nsix", "one two three four\nfive\n\nsix",
		},
		"what stands out": {
			"a **b** `c d` *e* [f](http://g) [h](i.md) \\*j* ``k`l``",
			"a b `c d` e f\n(http://g) h *j*\n`k`l`", "a <b>b</> <c>c</> <c>d</> <i>e</> f\n(http://g) h *j*\n<c>k`l</>",
		},
		"glued":              {"`a`, **b**.", "`a`, b.", "<c>a</>, <b>b</>."},
		"stars of no italic": {"2 * 3 * 4", "2 * 3 * 4", "2 * 3 * 4"},
		"list": {
			"- one two three four five\n  six\n- b\n  - c\n    d\n1. e\n\ntext",
			"- one two three\n  four five six\n- b\n  - c d\n1. e\n\ntext", "- one two three\n  four five six\n- b\n  - c d\n1. e\n\ntext",
		},
		"code": {
			"```sh .ai/x.sh\na  b\n\n# c\n```\n````\n```\n````\n```sh no-run: why\nd\n```",
			".ai/x.sh:\n    a  b\n\n    # c\n\n    ```\n\n    d", "<d>.ai/x.sh:</>\n    <c>a  b</>\n\n    <c># c</>\n\n    <c>```</>\n\n    <c>d</>",
		},
		"code that does not end": {"```\na", "    a", "    <c>a</>"},
		"table": {
			"| h | i |\n|---|---|\n| a \\| b | one two three four |\n| c |\n",
			"h      i\na | b  one two\n       three four\nc", "<b>h</>      <b>i</>\na | b  one two\n       three four\nc",
		},
		"table of long words":  {"| abcdefghijklm n | o |\n|---|---|\n| a | opqrstuvwxyz |\n", "abcdefghijklm  o\nn\na              opqrstuvwxyz", "<b>abcdefghijklm</>  <b>o</>\n<b>n</>\na              opqrstuvwxyz"},
		"table without a head": {"| | |\n|---|---|\n| a | b |\n", "a  b", "a  b"},
		"quote":                {"> a\n> b\n\nc", "│ a b\n\nc", "<d>│</> a b\n\nc"},
		"control characters":   {"a\x1b[31mb\u202ec\x07", "a␛[31mb�c␇", "a␛[31mb�c␇"},
		"wide":                 {"日本語日本語 日本語", "日本語日本語\n日本語", "日本語日本語\n日本語"},
		"nothing":              {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const width = 18
			if got := strings.Join(markdown{}.render(c.source, width), "\n"); got != c.shown {
				t.Errorf("plain\n%s\nwant\n%s", got, c.shown)
			}
			names := strings.NewReplacer(string(bold), "<b>", string(italic), "<i>", string(cyan), "<c>", string(dim), "<d>", reset, "</>")
			if got := names.Replace(strings.Join(markdown{d: display{colors: true}}.render(c.source, width), "\n")); got != c.colored {
				t.Errorf("in colours\n%s\nwant\n%s", got, c.colored)
			}
		})
	}
}

// FuzzMarkdown: nothing of a text moves the cursor of a terminal, whatever it holds.
func FuzzMarkdown(f *testing.F) {
	f.Add("# a\n- b\n  - c\n\n| a | b |\n|---|---|\n| c |\n> `x`\n```\ny", 10)
	f.Add("1. \n\n\n   > - ```\n", 0)
	f.Add("|\n|-\n", -3)
	f.Fuzz(func(t *testing.T, source string, width int) {
		shown := strings.Join(markdown{}.render(source, width), "\n")
		for _, r := range shown {
			if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
				t.Errorf("%q shows %q", source, r)
			}
		}
	})
}

// inlineCode is code within a line, in which two stars are a pattern of files.
var inlineCode = regexp.MustCompile("`[^` ]*`")

// The texts of the program are written in what is shown: no mark of it is left, and only
// tables of long words are too wide.
func TestMarkdownOfOurTexts(t *testing.T) {
	t.Parallel()
	texts := ourTexts()
	files, err := fs.Glob(system.FS(), "knowledge/rye/*/*.md")
	if err != nil || len(files) < 10 || len(texts) < len(files) {
		t.Fatalf("%d texts of %d files, %v", len(texts), len(files), err)
	}
	for id, doc := range texts {
		const width, unbroken = 80, 1 << 20
		for _, line := range (markdown{}).render(doc.Body, unbroken) {
			if !strings.HasPrefix(line, codeIndent) &&
				(strings.Contains(inlineCode.ReplaceAllString(line, "code"), "**") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#")) {
				t.Errorf("%s: a mark is left in %q", id, line)
			}
		}
		for _, line := range (markdown{}).render(doc.Body, width) {
			inTable := strings.Contains(strings.TrimLeft(line, " "), "  ")
			if plain.Columns(line) > width && !inTable && !strings.HasPrefix(line, codeIndent) {
				t.Errorf("%s: %d columns: %q", id, plain.Columns(line), line)
			}
		}
	}
}
