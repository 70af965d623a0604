package main_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
)

// teamOrigin is where each machine says that its clone is from: the project's name.
const teamOrigin = "https://git.example/team/app"

// noKey is a machine without a key for the model provider.
const noKey = "ANTHROPIC_API_KEY="

// newTeam is a project whose threads are on a server, with one machine of it, which has no
// key for the provider. Its files are in a repository that other machines clone.
func newTeam(t testing.TB, archive string) *place {
	t.Helper()
	p := newPlace(t, archive)
	_, err := sign.EnsureState(p.home(), nil)
	p.noError(err)
	p.env = append(p.env, storeurl.Variable+"="+pgtest.Server(t), noKey)
	p.git("init", "-q")
	p.git("add", ".")
	p.git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "a")
	p.git("remote", "add", "origin", teamOrigin)
	trusttest.AcceptSettings(p, p.roots())
	return p
}

func (p *place) git(arguments ...string) {
	p.Helper()
	cmd := exec.Command("git", arguments...)
	cmd.Dir, cmd.Env = p.dir, p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		p.Fatalf("git %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
}

// clone is another machine of a team: a user space and a clone of its own.
func (p *place) clone(name string, env ...string) *place {
	p.Helper()
	q := &place{TB: p.TB, program: p.program, model: p.model, dir: filepath.Join(filepath.Dir(p.dir), name, "project")}
	q.env = slices.Concat(p.env, p.machine(filepath.Join(name, "home")), env)
	p.git("clone", "-q", p.dir, q.dir)
	q.git("remote", "set-url", "origin", teamOrigin)
	trusttest.AcceptSettings(p, q.roots())
	return q
}

// work starts a worker on the project, and returns when it is at work. It is ended, with what
// it runs, when the test is over.
func (p *place) work(name string) { p.workWith(name, "--slots", "4") }

// workWith is work with flags.
func (p *place) workWith(name string, flags ...string) *exec.Cmd {
	p.Helper()
	cmd := exec.Command(p.program, slices.Concat([]string{"worker", "--project", p.dir, "--name", name}, flags)...)
	cmd.Dir, cmd.Env, cmd.Stderr = p.dir, append(slices.Clone(p.env), signalVariable+"=1ms"), p.Output()
	out, err := cmd.StdoutPipe()
	p.noError(err)
	p.noError(cmd.Start())
	p.Cleanup(func() {
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		_ = cmd.Process.Signal(syscall.SIGTERM) // drains
		for {
			select {
			case err := <-ended:
				if err != nil && !errors.As(err, new(*exec.ExitError)) {
					p.Error(err)
				}
				return
			case <-time.After(10 * time.Millisecond):
				_ = cmd.Process.Signal(os.Interrupt) // and ends what runs
			}
		}
	})
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(said, name) {
		p.Fatalf("the worker says %q, %v", said, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return cmd
}
