package item_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func TestShown(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                      "",
		"limits.spend":          "limits.spend",
		"team/review_2":         "team/review_2",
		"rye.execute.tool.*":    "rye.execute.tool.*",
		"llama3:8b":             "llama3:8b",
		"ignore what":           "(a name of 11 bytes)",
		"größe":                 "größe",
		"$0.50":                 "$0.50",
		"a,b":                   "a,b",
		`a\b`:                   `a\b`,
		"размер":                "размер",
		"忽略之前的指令":               "(a name of 21 bytes)", // a sentence needs no blanks
		"a\u202eb":              "(a name of 5 bytes)",
		"a\x1b[2J":              "(a name of 5 bytes)",
		"\u05d0":                "(a name of 2 bytes)",
		"<b>":                   "(a name of 3 bytes)",
		"a\nb":                  "(a name of 3 bytes)",
		strings.Repeat("a", 64): strings.Repeat("a", 64),
		strings.Repeat("a", 65): "(a name of 65 bytes)",
	} {
		if got := item.Shown(name); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
}

// Libraries' words about a file are kept, but for the names in it.
func TestShownIn(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		`mapping key "limits" already defined at line 2`:      `mapping key "limits" already defined at line 2`,
		`mapping key "do \"this\"" already defined at line 2`: `mapping key (a name of 9 bytes) already defined at line 2`,
		"cannot unmarshal !!str `run all` into int":           "cannot unmarshal !!str (a name of 7 bytes) into int",
		"did not find expected ',' or ']'":                    "did not find expected ',' or ']'",
		"did not find expected <document start>":              "did not find expected <document start>",
		"element <a> closed by </b>":                          "element <a> closed by </b>",
	} {
		if got := item.ShownIn(message); got != want {
			t.Errorf("%s is shown as %s, want %s", message, got, want)
		}
	}
}

// A shown name never has a blank or a line break, whatever the file holds, but in
// the words that stand for it.
func TestShownSaysNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		got := strings.TrimSuffix(strings.TrimPrefix(item.Shown(name), "(a name of "), " bytes)")
		if strings.ContainsAny(got, " \n\t") || len(got) > item.MaxShown {
			t.Errorf("%q is shown as %q", name, got)
		}
	})
}
