package cli

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/prompt"
)

// TestChoose: a person picks by number or id and is asked for what is needed and was
// not given.
func TestChoose(t *testing.T) {
	t.Parallel()
	offered := []prompt.Prompt{{ID: "rye/day"}, {ID: "rye/map-files", Arguments: []prompt.Argument{
		{Name: "pattern", Description: "Which files", Required: true}, {Name: "workers"},
		{Name: "prompt", Required: true}, {Name: "token", Required: true},
	}}}
	for typed, want := range map[string]string{
		"2\n*.go\n":              "rye/map-files pattern=*.go",
		"rye/map-files\n  a=b\n": "rye/map-files pattern=a=b",
		"1\n":                    "rye/day",
		"\n":                     "",
		"":                       "",
		"3\n":                    `"3" is none of them`,
		"2":                      "rye/map-files pattern=", // the input ends: the start says what is missing
	} {
		var out bytes.Buffer
		q := questions{lines: bufio.NewScanner(strings.NewReader(typed)), out: &out}
		got := ""
		chosen, err := q.choose(offered)
		if err != nil {
			got = err.Error()
		} else if chosen != nil {
			given, err := q.inputs(chosen, runFlags{inputs: []string{"prompt=x"}, env: []string{"token=TOKEN"}})
			if err != nil {
				t.Fatal(err)
			}
			got = strings.Join(slices.Concat([]string{chosen.ID}, given), " ")
		}
		if got != want {
			t.Errorf("%q: %q, want %q\n%s", typed, got, want, &out)
		}
	}
}
