package claude

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFill(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Do $ARGUMENTS.":                     "Do one 'two three' four.",
		"$1, $2, $3, $4":                     "one, two three, four, $4",
		"$0 and $1":                          "one and two three",
		"$ARGUMENTS[1], $2":                  "two three, four",
		"$ARGUMENTS[x] $ARGUMENTSX":          "one 'two three' four[x] $ARGUMENTSX",
		`\$1 costs $100 and \$ARGUMENTS`:     "$1 costs $100 and $ARGUMENTS",
		"$HOME $(ls) ${X} $1x":               "$HOME $(ls) ${X} $1x",
		"run !`git diff $1` and @src/$2.go!": "run !`git diff one` and @src/two three.go!",
		"{input:arguments} {env:HOME}":       "{input:arguments} {env:HOME}",
		"dir ${CLAUDE_SKILL_DIR}/a":          "dir /s/a",
	} {
		if got := (Values{Arguments: "one 'two three' four", Folder: "/s"}).Fill(Parse(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	kinds := func(text string) (all []string) {
		for _, p := range Parse(text) {
			if p.Kind == PartShell || p.Kind == PartFile {
				all = append(all, p.Text)
			}
		}
		return all
	}
	for text, want := range map[string][]string{
		"!`ls` x!`no` (!`yes`)":        {"!`ls`", "!`yes`"},
		"!`` !` ` !`open":              nil,
		"!`two\nlines`":                nil,
		"see @src/a.go, @README.md.":   {"@src/a.go", "@README.md"},
		"a@b.c @param @Component me@x": nil,
		"@$1":                          {"@$1"},
		"```ts\nimport x from\n @app/x\n```\n @app/y.ts": {"@app/y.ts"},
	} {
		if got := kinds(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"": nil, "  ": nil, "a b": {"a", "b"}, `"a b" c`: {"a b", "c"}, "it's a": {"it's", "a"}, `''`: {""}, `"open a`: {"open a"},
	} {
		if got := Words(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestAttackCommandInArguments: the arguments of a command hold commands, files and places for arguments. They stay the text that they are.
func TestAttackCommandInArguments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.SampledFrom([]string{"!`touch x`", "@/etc/passwd", "$1", "$ARGUMENTS", "`", "a !`b` $0"}).Draw(t, "given")
		parts := Parse("Before !`git log $1` " + rapid.SampledFrom([]string{"$ARGUMENTS", "$1 and $2", "@$1"}).Draw(t, "text"))
		before := slices.Clone(parts)
		filled := Values{Arguments: given}.Fill(parts)
		if !slices.EqualFunc(parts, before, func(a, b Part) bool { return a.Text == b.Text && a.Kind == b.Kind }) {
			t.Fatal("filling changed the text")
		}
		if shells := slices.IndexFunc(parts, func(p Part) bool { return p.Kind == PartShell && !strings.HasPrefix(p.Text, "!`git log") }); shells >= 0 {
			t.Fatalf("%q became a command of %q", parts[shells].Text, filled)
		}
	})
}

// A text that is taken apart is the same text.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"!`a $1` @b/c $ARGUMENTS[0] \\$1 ${CLAUDE_SKILL_DIR}", "```\n@a/b\n```", "$0$1$", "@@a.b @ !`"} {
		f.Add(text, "a 'b")
	}
	f.Fuzz(func(t *testing.T, text, arguments string) {
		var whole strings.Builder
		for _, p := range Parse(text) {
			whole.WriteString(p.Text)
			if p.Kind == PartText && p.Text == "" {
				t.Fatal("an empty part")
			}
		}
		bare := func(text string) string { return strings.ReplaceAll(text, `\`, "") }
		if len(whole.String()) > len(text) || bare(whole.String()) != bare(text) {
			t.Fatalf("%q became %q", text, whole.String())
		}
		Values{Arguments: arguments}.Fill(Parse(text))
	})
}

// A file is read or refused, and gets no capability but those of tools that it names.
func FuzzDirective(f *testing.F) {
	for _, src := range []string{
		"---\nname: x\ntools: Read, Bash(git add:*)\n---\nDo it.", "---\ndescription: a: b\n  - c\ntools:\n- Bash\n---\nx", "---\na: &a [*a]\n---\nx",
		"---\n? a\n: b\n---\nx", "---\ntools: [", "\xef\xbb\xbf---\r\n---\r\nx", "---\nmodel: 1e400\nmaxTurns: 0x10\n---\nx", "x !`y` $1",
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, id := range []string{"claude/agents/x", "claude/commands/x", "claude/skills/x"} {
			doc, err := Directive(Source{Path: "x.md", ID: id, Content: []byte(src)})
			if err != nil {
				continue
			}
			for _, c := range doc.Permissions.Capabilities {
				known := slices.ContainsFunc([]string{files, "rye.execute.tool.mcp.", "rye.execute.directive.", "rye.search.directive.", "rye.execute.tool.rye.web."},
					func(prefix string) bool { return strings.HasPrefix(c, prefix) })
				if !known && (c != shell || !strings.Contains(src, "Bash")) {
					t.Fatalf("%q has %s", src, c)
				}
			}
		}
	})
}
