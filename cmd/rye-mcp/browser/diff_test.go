package browser_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
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

// TestDiff: the row of a thread says what it has changed in a workspace of its own, which is shown line by line.
func TestDiff(t *testing.T) {
	longtest.Mark(t)
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
	p.git()
	s := p.serve()
	p.untilIs(s.start("change", nil), thread.Completed)
	b := s.open(desktop)
	b.openRow("^Change the files")

	b.says("2 files changed")
	b.press("tab", "^Files$")
	b.says("new\\.txt")
	b.says("kept\\.txt")
	b.says("brand new")
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
