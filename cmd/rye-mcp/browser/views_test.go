package browser_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// changing is a directive that works in a git worktree of its own.
const changing = busy + `
-- kept.txt --
one
-- .ai/directives/change.md --
'''xml
<directive name="change" version="1.0.0">
  <metadata><description>Changes files.</description><model tier="fast" /><workspace type="worktree" /><limits turns="4" spend="0.20" />
    <permissions><execute><tool>rye.file-system.*</tool></execute></permissions></metadata>
</directive>
'''

Change the files.
`

// TestViews: the views of a thread that has ended tell what it did, in figures and in the files that it changed.
func TestViews(t *testing.T) {
	t.Parallel()
	p := newPlace(t, strings.Replace(changing, "turns:\n", `turns:
  - match: {first: Change the files, turn: 1}
    text: I change two files.
    tool_calls:
      - {name: rye_file_system_write, input: {path: kept.txt, content: "one\ntwo\n"}}
      - {name: rye_file_system_write, input: {path: new.txt, content: "brand new\n"}}
    usage: {input_tokens: 3000, output_tokens: 200}
  - match: {first: Change the files}
    text: Two files are changed.
`, 1))
	p.rye("keys", "generate")
	p.git()
	s := p.serve()
	id, other := s.start("change", nil), s.start("greet", map[string]any{"name": "Ada"})
	p.untilIs(id, thread.Completed)
	p.untilIs(other, thread.Completed)
	b := s.open(desktop)
	b.openRow("^Change the files")

	b.says("Two files are changed\\.")
	b.press("button", "^Input")
	b.says("brand new")
	b.fill("Find", "brand new")
	b.says("1 of \\d|of 1|match|found")

	b.press("tab", "^Timeline$")
	b.says("1 thread in ")
	b.press("button", "^As a table$")
	b.find("row", "rye_file_system_write")
	b.press("tab", "^Flame$")
	b.press("button", "^By money$")
	b.says("Width is money")
	b.press("tab", "^Spend$")
	b.says("Spend over time")

	b.press("tab", "^Files$")
	b.says("new\\.txt")
	b.says("kept\\.txt")
	b.says("brand new")

	b.press("tab", "^Compare$")
	b.fill("Compare with", string(other))
	b.press("button", "^Compare$")
	b.find("row", "^≠? ?.*[Dd]irective.*change.*greet")

	b.press("tab", "^Verify$")
	b.says("This thread verifies")
	b.press("button", "^Show the receipt$")
	b.says("SHA-256 of the directive")
}

// git makes the project a repository with everything in it committed.
func (p *place) git() {
	p.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		p.Skip("git is not installed")
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "-m", "base"}} {
		cmd := exec.CommandContext(p.Context(), "git", args...)
		cmd.Dir, cmd.Env = p.dir, p.env
		if out, err := cmd.CombinedOutput(); err != nil {
			p.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
}
