package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/replay"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

const ledProject = `
-- .ai/directives/lead.md --
` + "```xml" + `
<directive name="lead" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <limits turns="4" spend="0.40" spawns="3" depth="2" />
    <permissions><execute><directive>worker</directive><tool>rye.bash</tool></execute></permissions>
    <hooks>
      <hook id="start" event="thread_started"><execute item_type="tool" item_id="rye/bash"><param name="command" value="echo ran >> ran.txt"/></execute></hook>
      <hook id="step" event="after_step"><execute item_type="tool" item_id="rye/bash"><param name="command" value="echo ran >> ran.txt"/></execute></hook>
      <hook id="end" event="after_complete"><execute item_type="directive" item_id="worker"/></hook>
    </hooks>
  </metadata>
</directive>
` + "```" + `

Lead.
-- .ai/directives/worker.md --
` + "```xml" + `
<directive name="worker" version="1.0.0"><metadata><model tier="fast" /><limits turns="2" /></metadata></directive>
` + "```" + `

Do the work.
-- model.yaml --
turns:
  - match: {first: "Do the work"}
    text: Done.
  - match: {turn: 1}
    tool_calls:
      - name: rye_execute
        input: {item_type: directive, item_id: worker, thread: fork}
      - name: rye_bash
        input: {command: "echo ran >> ran.txt"}
  - match: {turn: 2}
    text: "The worker is done."
`

// cli runs a command in a folder, and returns what it has written.
func (p *place) cli(dir string, env []string, args ...string) (string, error) {
	cmd := exec.Command(p.program, args...)
	cmd.Dir, cmd.Env = dir, slices.Concat(p.env, env)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (p *place) mustCLI(dir string, args ...string) string {
	p.Helper()
	out, err := p.cli(dir, nil, args...)
	if err != nil {
		p.Fatalf("rye-mcp %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// recordedLead is a place in which a thread with two others below it was run and
// recorded, to lead.zip beside the project.
func recordedLead(t *testing.T) (p *place, recording string) {
	t.Helper()
	p = newPlace(t, ledProject)
	p.mustCLI(p.dir, "keys", "generate")
	p.mustCLI(p.dir, "run", "lead")
	recording = filepath.Join(filepath.Dir(p.dir), "lead.zip")
	p.until(func() (bool, string) { // its last hook is a thread of its own
		left, err := processesIn(p.dir)
		return err == nil && len(left) == 0, strings.Join(left, "\n")
	})
	p.mustCLI(p.dir, "threads", "export", "latest:lead", "--tree", "--out", recording)
	return p, recording
}

// listed are the threads of a project.
func (p *place) listed(dir string) []string {
	p.Helper()
	out, err := p.cli(dir, nil, "threads", "list", "--all", "--json")
	if err != nil && strings.Contains(out, "no thread has run") {
		return nil
	}
	p.noError(err)
	var list struct {
		Threads []struct {
			ID string `json:"thread_id"`
		} `json:"threads"`
	}
	p.noError(json.Unmarshal([]byte(out), &list))
	var ids []string
	for _, one := range list.Threads {
		ids = append(ids, one.ID)
	}
	return ids
}

// TestImportWalk kills an import at every step of it, each time it comes there; while it
// puts threads together once, but in a soak. All threads of the recording are there
// afterwards, or none, and another import brings the rest.
func TestImportWalk(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p, recording := recordedLead(t)
	for _, at := range replay.Crashpoints() {
		times := 1
		if at == replay.CrashMoved || at == replay.CrashPut && soakMinutes() > 0 {
			times = 3
		}
		for n := 1; n <= times; n++ {
			t.Run(fmt.Sprintf("%s-%d", at, n), func(t *testing.T) { p.killImport(t, recording, at, n) })
		}
	}
}

func (p *place) killImport(t *testing.T, recording string, at thread.Crashpoint, n int) {
	dir := t.TempDir()
	env, died := p.dieAt(at, n)
	out, err := p.cli(dir, env, "threads", "import", recording)
	if err == nil || !died() {
		t.Fatalf("it did not die: %v\n%s", err, out)
	}
	if found := len(p.listed(dir)); found != 0 && found != 3 {
		t.Errorf("killed in the middle, %d of 3 threads are there", found)
	}
	if out, err = p.cli(dir, nil, "threads", "import", recording); err != nil {
		t.Fatalf("imported again: %v\n%s", err, out)
	}
	if found := len(p.listed(dir)); found != 3 {
		t.Errorf("%d of 3 threads are there: %s", found, out)
	}
	if out, err := p.cli(dir, nil, "threads", "verify", "--all"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := p.cli(dir, nil, "threads", "reconcile"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, ".ai", "state", "threads", ".import")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the stage is left: %v", err)
	}
}

// Four processes import the same at once: each says that it has, or that another one
// does.
func TestImportAtOnce(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p, recording := recordedLead(t)
	dir := t.TempDir()
	p.mustCLI(dir, "init")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			out, err := p.cli(dir, nil, "threads", "import", recording)
			if err != nil && !strings.Contains(out, "imported by another process") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	all.Wait()
	if found := len(p.listed(dir)); found != 3 {
		t.Errorf("%d of 3 threads are there", found)
	}
	if out, err := p.cli(dir, nil, "threads", "verify", "--all"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// filesOf are all files below a folder with their content.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		files[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestAttackRecordingRuns: a repository commits recordings whose threads ran commands, started threads and fired hooks at every event, for somebody who tests it. The replay runs none of that, asks no model, and changes no file of the project.
func TestAttackRecordingRuns(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p, recording := recordedLead(t)
	ran, err := os.ReadFile(filepath.Join(p.dir, "ran.txt"))
	if err != nil || strings.Count(string(ran), "ran") != 4 { // a call, a hook at the start, one behind each turn
		t.Fatalf("the thread itself did not run what it has: %q, %v", ran, err)
	}
	p.noError(os.MkdirAll(filepath.Join(p.dir, ".ai", "tests"), 0o755))
	p.noError(os.Rename(recording, filepath.Join(p.dir, ".ai", "tests", "lead.ryetest")))
	before, asked := filesOf(t, p.dir), p.model.requests()
	threads := p.listed(p.dir)
	noWay := []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:1", "ANTHROPIC_API_KEY=", "TMPDIR=" + t.TempDir()}
	out, err := p.cli(p.dir, noWay, "test")
	if err != nil || !strings.Contains(out, "1 same") {
		t.Errorf("%v\n%s", err, out)
	}
	if now := p.model.requests(); now != asked {
		t.Errorf("the model was asked %d times", now-asked)
	}
	if now := p.listed(p.dir); !slices.Equal(now, threads) {
		t.Errorf("%d threads were started", len(now)-len(threads))
	}
	for path, content := range filesOf(t, p.dir) {
		if before[path] != content && !strings.Contains(path, "registry.db") && !strings.Contains(path, "ledger.db") {
			t.Errorf("%s was changed", path)
		}
	}
}

// TestAttackRecordingOfStranger: a repository commits recordings that a stranger has signed, and a link to a file outside. They are refused by the key, the link is not followed, and the command fails.
func TestAttackRecordingOfStranger(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	stranger, recording := recordedLead(t)
	p := newPlace(t, ledProject)
	p.mustCLI(p.dir, "keys", "generate")
	tests := filepath.Join(p.dir, ".ai", "tests")
	p.noError(os.MkdirAll(tests, 0o755))
	p.noError(os.Symlink(recording, filepath.Join(tests, "linked.ryetest")))
	content, err := os.ReadFile(recording)
	p.noError(err)
	p.noError(os.WriteFile(filepath.Join(tests, "theirs.ryetest"), content, 0o600))
	out, err := p.cli(p.dir, nil, "test")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(out, "which you do not trust") || strings.Contains(out, "linked") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := p.cli(p.dir, nil, "threads", "import", filepath.Join(tests, "theirs.ryetest")); err == nil || len(p.listed(p.dir)) != 0 {
		t.Errorf("imported: %s", out)
	}
	_ = stranger
}
