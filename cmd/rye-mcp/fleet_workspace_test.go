package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/changeset"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// changer is a project whose one directive changes a file by what it finds in it.
const changer = `
-- .ai/directives/changer.md --
` + "```xml" + `
<directive name="changer" version="1.0.0">
  <metadata><model tier="fast" /><limits spend="0.10" /><workspace type="worktree" /><permissions><execute><tool>rye.file-system.*</tool><tool>rye.bash</tool></execute><acknowledge risk="elevated">A test</acknowledge></permissions></metadata>
</directive>
` + "```" + `

Change it.
-- kept.txt --
committed
-- model.yaml --
turns:
  - match: {turn: 1}
    tool_calls: [{name: rye_execute, input: {item_type: tool, item_id: rye/bash, parameters: {command: "cat kept.txt untracked.txt later.txt | tr '\\n' ' '; echo changed >>kept.txt; echo new >new.txt"}}}]
  - match: {last: committed uncommitted untracked of a later commit}
    text: It saw what was there.
  - text: It saw something else.
`

// TestWorkspaceTravels: a thread that another machine runs has the files of the machine that has
// started it, committed there alone, uncommitted and untracked; the changes that it has left
// are shown and applied where it was started.
func TestWorkspaceTravels(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	here := newTeam(t, changer)
	here.git("update-ref", "refs/remotes/origin/main", "HEAD") // as after a push
	other := here.clone("other", "ANTHROPIC_API_KEY="+testKey)
	here.write("later.txt", []byte("of a later commit\n"))
	here.git("add", "later.txt")
	here.git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "b")
	here.write("kept.txt", []byte("committed\nuncommitted\n"))
	here.write("untracked.txt", []byte("untracked\n"))
	other.write("kept.txt", []byte("of the worker's own\n"))
	other.work("other")
	h := here.serve()

	started := must[view.Started](h, "rye_execute", args{"item_id": "changer", "async": true})
	id := started.ThreadID
	ended := must[view.WaitResult](h, "wait_threads", args{"thread_ids": []string{string(id)}}).Results[id]
	if ended.Result != "It saw what was there." || ended.Changes == nil || ended.Changes.Branch != "rye/"+string(id) || ended.Changes.Count() != 2 {
		t.Fatalf("the end is %+v, with changes %+v\n%s", ended, ended.Changes, here.mustCLI(here.dir, "threads", "show", string(id)))
	}
	shown := must[changeset.Shown](h, "diff_thread", args{"thread_id": id})
	if shown.Added != 1 || shown.Modified != 1 || !strings.Contains(shown.Text, "+changed") || strings.Contains(shown.Text, "+uncommitted") {
		t.Errorf("it is shown as %+v", shown)
	}
	third := here.clone("third")
	if said := third.mustCLI(third.dir, "threads", "diff", string(id), "--stat"); !strings.Contains(said, "A new.txt") {
		t.Errorf("on a third machine it is shown as\n%s", said)
	}
	done, err := here.rows().Exec(t.Context(), `DELETE FROM record_artifacts WHERE thread_id = $1 AND name LIKE '%.gitb'`, string(id))
	here.noError(err)
	_, err = ask[changeset.Shown](here.clone("fourth").serve(), "diff_thread", args{"thread_id": id})
	if done.RowsAffected() != 2 || err == nil || !strings.Contains(err.Error(), "the files of the workspace cannot be had") {
		t.Errorf("without what travelled (%v) it is %v", done, err)
	}
	must[changeset.Applied](h, "apply_thread", args{"thread_id": id})
	for name, want := range map[string]string{"kept.txt": "committed\nuncommitted\nchanged\n", "new.txt": "new\n"} {
		if got, err := os.ReadFile(filepath.Join(here.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(other.dir, "kept.txt")); err != nil || string(text) != "of the worker's own\n" {
		t.Errorf("the worker's checkout has %q, %v", text, err)
	}
}
