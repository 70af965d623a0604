package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/process/guesttest"
)

// guest runs rye-mcp as a user who may be kept from files, which root is not.
type guest struct {
	*testing.T
	root, project, home, program string
	as                           *syscall.SysProcAttr
}

func newGuest(t *testing.T) *guest {
	t.Helper()
	root, err := os.MkdirTemp("", "guest") //nolint:usetesting // every user must come to it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(root, func(path string, d os.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		_ = os.RemoveAll(root)
	})
	g := &guest{T: t, root: root, project: filepath.Join(root, "project"), home: filepath.Join(root, "home"), program: filepath.Join(root, "rye-mcp")}
	g.must(os.Chmod(root, 0o755)) //nolint:gosec // every user must come to it
	g.must(guesttest.Copy(g.program))
	if who := guesttest.Credential(); who != nil {
		g.as = &syscall.SysProcAttr{Credential: who}
	}
	g.mkdir(g.project)
	g.mkdir(g.home)
	return g
}

func (g *guest) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// mkdir makes a folder of the guest's.
func (g *guest) mkdir(path string) {
	g.Helper()
	g.must(os.MkdirAll(path, 0o700))
	if g.as != nil {
		g.must(os.Chown(path, guesttest.ID, guesttest.ID))
	}
}

// close takes from the guest the right to write to a folder, which is made.
func (g *guest) close(parts ...string) string {
	g.Helper()
	path := g.root
	for _, part := range parts {
		path = filepath.Join(path, part)
		g.mkdir(path)
	}
	g.must(os.Chmod(path, 0o500)) //nolint:gosec // a folder
	return path
}

// run calls the program.
func (g *guest) run(args ...string) (said string) {
	g.Helper()
	_ = guesttest.Start(func() error { // its words tell more
		out, err := g.command(args).CombinedOutput()
		said = string(out)
		return err
	})
	return said
}

func (g *guest) command(args []string) *exec.Cmd {
	cmd := exec.CommandContext(g.Context(), g.program, args...)
	cmd.Dir, cmd.SysProcAttr = g.project, g.as
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.home, "USER_SPACE=" + g.home, "ANTHROPIC_API_KEY=" + testKey,
		"ANTHROPIC_BASE_URL=http://127.0.0.1:9", "GORACE=atexit_sleep_ms=0",
	}
	return cmd
}

// wantRefusal checks that what was said names a path and what to do.
func (g *guest) wantRefusal(said, path string) {
	g.Helper()
	message, try, ok := strings.Cut(said, "\nTry:   ")
	if !strings.HasPrefix(message, "Error: ") || !ok || !strings.Contains(message, path) || len(try) < 10 {
		g.Errorf("of %s it says:\n%s", path, said)
	}
}

var startAThread = []string{"run", "rye/demo/worker", "--input", "part=x"}

// TestUnwritable: rye-mcp may not write to a place that it has to write to. It says what
// that is and what to do about it.
func TestUnwritable(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, closed := range map[string][]string{
		"project": {"project"}, "folder": {"project", ".ai"}, "user space": {"home"},
	} {
		for command, args := range map[string][]string{"init": {"init"}, "run": startAThread} {
			t.Run(command+" "+name, func(t *testing.T) {
				t.Parallel()
				g := newGuest(t)
				path := g.close(closed...)
				g.wantRefusal(g.run(args...), path)
			})
		}
	}
	for _, name := range []string{"state", filepath.Join("state", "threads")} {
		t.Run("run "+name, func(t *testing.T) {
			t.Parallel()
			g := newGuest(t)
			path := g.close(append([]string{"project", ".ai"}, strings.Split(name, string(filepath.Separator))...)...)
			g.wantRefusal(g.run(startAThread...), path)
		})
	}
}

// TestAttackAnothersState: the state of a project belongs to another user of the machine. It is left as it is, and the person is told whose it is.
func TestAttackAnothersState(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	for _, name := range []string{".ai/state", ".ai/state/threads"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuest(t)
			g.mkdir(filepath.Join(g.project, ".ai"))
			anothers := filepath.Join(g.project, filepath.FromSlash(name))
			file := filepath.Join(g.project, ".ai", "state", "threads", "registry.db")
			g.mkdir(filepath.Join(g.project, ".ai", "state"))
			g.mkdir(filepath.Dir(file))
			g.must(os.Chown(anothers, 0, 0))
			g.must(os.Chmod(anothers, 0o777)) //nolint:gosec // the guest may write there all the same
			g.must(os.WriteFile(file, []byte("another's"), 0o600))
			if said := g.run("threads", "list"); !strings.Contains(said, "belongs to user 0") {
				t.Errorf("list says: %s", said)
			}
			said := g.run(startAThread...)
			if name == ".ai/state" {
				g.wantRefusal(said, anothers)
			} else if !strings.Contains(said, "thread rye/demo/worker") {
				t.Errorf("no thread is started beside it: %s", said)
			}
			if left, err := os.ReadFile(file); string(left) != "another's" {
				t.Errorf("it was changed: %q, %v", left, err)
			}
			if entries, err := os.ReadDir(filepath.Dir(file)); len(entries) != 1 {
				t.Errorf("something was added to it: %v, %v", entries, err)
			}
		})
	}
}

// TestDatabaseOfAnother: a file of the user's own state was made by another, as a run
// under sudo does. The program names what is in the way.
func TestDatabaseOfAnother(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	g := newGuest(t)
	if said := g.run(startAThread...); !strings.Contains(said, "thread rye/demo/worker") {
		t.Fatalf("start: %s", said)
	}
	state := filepath.Join(g.project, ".ai", "state", "threads")
	for _, name := range []string{"registry.db", "registry.lock", "budget_ledger.db"} {
		path := filepath.Join(state, name)
		g.must(os.Chown(path, 0, 0))
		g.wantRefusal(g.run(startAThread...), path)
		g.must(os.Chown(path, guesttest.ID, guesttest.ID))
	}
	if said := g.run("threads", "list"); !strings.Contains(said, "rye/demo/worker") {
		t.Errorf("afterwards: %s", said)
	}
}
