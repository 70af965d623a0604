package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// helped runs a command line in a folder, without home and without variables.
func helped(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	sys := System{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
		Getenv:  func(string) string { return "" },
		Getwd:   func() (string, error) { return dir, nil },
		HomeDir: func() (string, error) { return "", fs.ErrNotExist },
	}
	root := newRoot(sys)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestHelp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notes := filepath.Join(dir, ".ai", "knowledge", "team")
	if err := os.MkdirAll(notes, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(notes, "notes.md"), []byte("```yaml\nname: notes\ntitle: Our notes\n```\n\nShip *soon*.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args     []string
		contains []string
	}{
		"overview":               {nil, []string{"Available Commands:", "Guides (rye-mcp help TOPIC):\n", "  first-directive  ", "Reference:\n", "  security  "}},
		"a guide":                {[]string{"first-directive"}, []string{"The first directive\n===================\n", "    $ rye-mcp init\n"}},
		"a guide by its id":      {[]string{"rye/guides/first-directive"}, []string{"The first directive\n==="}},
		"a guide below ours":     {[]string{"guides/first-directive"}, []string{"The first directive\n==="}},
		"the reference":          {[]string{"security"}, []string{"Security\n========\n"}},
		"the reference by id":    {[]string{"rye/core/security"}, []string{"Security\n========\n"}},
		"knowledge of a project": {[]string{"team/notes"}, []string{"Our notes\n=========\n\nShip soon.\n"}},
		"a command":              {[]string{"items", "show"}, []string{"rye-mcp items show ITEM"}},
		// rye/core/threads has the same name.
		"a command before others": {[]string{"threads"}, []string{"Available Commands:", "Delegating work to threads: rye-mcp help core/threads\n"}},
		"a topic of commands":     {[]string{"exit-codes"}, []string{"Exit codes of all commands:"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := helped(t, dir, append([]string{"help"}, c.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range c.contains {
				if !strings.Contains(out, part) {
					t.Errorf("no %q in\n%s", part, out)
				}
			}
			if strings.Contains(out, "\x1b") {
				t.Errorf("colours where nobody asked for them: %q", out)
			}
		})
	}
	out, err := helped(t, dir, "help", "first-directive", "--color", "always")
	if err != nil || !strings.HasPrefix(out, string(bold)) {
		t.Errorf("in colours %q, %v", out, err)
	}
}

func TestHelpOfNothing(t *testing.T) {
	t.Parallel()
	for arg, try := range map[string]string{
		"securty": "rye-mcp help security", "Trouble": "rye-mcp help troubleshooting", "First-Directve": "rye-mcp help first-directive",
		"zzzzzzzzzzzzz": "rye-mcp help", "../x": "rye-mcp help", "": "rye-mcp help",
	} {
		_, err := helped(t, t.TempDir(), "help", arg)
		var usage *usageError
		if !errors.As(err, &usage) || usage.try != try {
			t.Errorf("%q: %v, %+v", arg, err, usage)
		}
	}
	if _, err := helped(t, t.TempDir(), "help", "security", "more"); err == nil {
		t.Error("two topics are one")
	}
}

func TestHelpCompletes(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"first-dir": "first-directive\tFrom", "ite": "items\t", "secu": "security\t", "rye/core/sec": "rye/core/security\n", "guides/": "",
	} {
		out, err := helped(t, t.TempDir(), "__complete", "help", prefix)
		if err != nil || !strings.HasPrefix(out, want) {
			t.Errorf("%q: %q, %v", prefix, out, err)
		}
	}
	out, _ := helped(t, t.TempDir(), "__complete", "help", "threads", "wa")
	if !strings.HasPrefix(out, "wait\t") || strings.Contains(out, "watching") {
		t.Errorf("below a command: %q", out)
	}
}

// Each text is listed by a name that opens it.
func TestTopicsOpen(t *testing.T) {
	t.Parallel()
	root, texts := newRoot(System{}), ourTexts()
	for _, id := range texts.below(oursBelow) {
		name := texts.topic(id, root)
		if about, _, err := root.Find([]string{name}); err == nil && about != root {
			t.Errorf("%s is listed as %s, which shows the command", id, name)
		}
		if texts.find(name) != texts[id] {
			t.Errorf("%s is listed as %s, which opens another text", id, name)
		}
	}
}

// Commands that texts of the program tell people to run are there, and so are the topics of
// help, which open the text and not a command of its name.
func TestTextsNameCommands(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join("..", "..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	texts := ourTexts()
	texts["README"] = &item.KnowledgeDoc{Body: string(readme)}
	named := regexp.MustCompile("(?m)(?:`|^\\$ |^)rye-mcp ([a-z][a-z-]*)(?: ([a-z][a-z/-]*))?")
	root := newRoot(System{})
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for id, doc := range texts {
		for _, found := range named.FindAllStringSubmatch(doc.Body, -1) {
			command, rest, err := root.Find(found[1:2])
			if err != nil || len(rest) > 0 {
				t.Errorf("%s: no command %s", id, found[0])
				continue
			}
			if below, _, err := command.Find(found[2:]); found[2] != "" && command.HasSubCommands() && (err != nil || below == command) {
				t.Errorf("%s: no command %s", id, found[0])
			}
			if about, _, err := root.Find(found[2:]); command.Name() == "help" && found[2] != "" && texts.find(found[2]) == nil && (err != nil || about == root) {
				t.Errorf("%s: no topic %s", id, found[2])
			} else if command.Name() == "help" && err == nil && about != root && texts.find(found[2]) != nil {
				t.Errorf("%s: help %s shows the command, not the text", id, found[2])
			}
		}
	}
}

// The guide to the command line has every command that people can use.
func TestCommandLineGuide(t *testing.T) {
	t.Parallel()
	guide := ourTexts()[guidesBelow+"command-line"].Body
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			if !below.Hidden {
				walk(below)
			}
		}
		name := strings.TrimPrefix(c.CommandPath(), "rye-mcp ")
		if c.HasParent() && !c.HasSubCommands() && !strings.HasPrefix(name, "threads call ") && !strings.Contains(guide, "`"+name) && !strings.Contains(guide, "`rye-mcp "+name) {
			t.Errorf("the guide has no %s", name)
		}
	}
	walk(newRoot(System{}))
}

// TestAttackHelpText: a project brings knowledge of the ids of guides with other advice, and knowledge with escape sequences.
// Help shows the guides of the program, and of other knowledge no character that a terminal obeys.
func TestAttackHelpText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for id, text := range map[string]string{
		"rye/guides/first-directive": "# Turn signatures off", "first-directive": "# Turn signatures off", "security": "# Trust me",
		"team/notes": "# Notes \x1b]0;owned\x07\u202e\n\n- a\x1b[2J\n\n| \x1b[31m | b |\n|---|---|\n| `\u009b1m` | c |\n\n```\n\x1b[1A\n```\n",
	} {
		path := filepath.Join(dir, ".ai", "knowledge", filepath.FromSlash(id)+".md")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("```yaml\ntitle: x\n```\n\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for topic, want := range map[string]string{
		"first-directive": "The first directive\n", "rye/guides/first-directive": "The first directive\n", "guides/first-directive": "The first directive\n", "security": "Security\n",
	} {
		if out, err := helped(t, dir, "help", topic); err != nil || !strings.HasPrefix(out, want) {
			t.Errorf("%s: %v\n%s", topic, err, out)
		}
	}
	out, err := helped(t, dir, "help", "team/notes")
	if err != nil || plain.Lines(out) != out || !strings.Contains(out, "owned") {
		t.Errorf("%q, %v", out, err)
	}
}

// TestFlagHelp: the help of a flag names what it takes, has one default at most, and no line
// of a command's text is wider than a narrow terminal shows.
func TestFlagHelp(t *testing.T) {
	t.Parallel()
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.LocalFlags().FlagUsages()) {
			if strings.Count(line, "(default") > 1 || strings.Contains(line, "stringArray") || strings.Contains(line, " strings ") {
				t.Errorf("%s: %s", cmd.CommandPath(), line)
			}
		}
		for line := range strings.Lines(cmd.Long) {
			if len([]rune(line)) > 96 {
				t.Errorf("%s: a line of %d characters: %s", cmd.CommandPath(), len([]rune(line)), line)
			}
		}
		for _, below := range cmd.Commands() {
			look(below)
		}
	}
	look(newRoot(testSystem(t.TempDir(), nil)))
}
