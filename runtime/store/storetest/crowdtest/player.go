package crowdtest

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
)

// Player is a process of the test binary in a role.
type Player struct {
	Cmd   *exec.Cmd
	Stdin io.WriteCloser
	lines *bufio.Scanner
}

// Start starts the test binary with a variable in its environment that says which role it
// has.
func Start(t testing.TB, role string, args ...string) *Player {
	t.Helper()
	p := &Player{Cmd: Command(t, role, args...)}
	var err error
	if p.Stdin, err = p.Cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// Command is a process of the test binary in a role, not yet started.
func Command(t testing.TB, role string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), role)
	cmd.Stderr = os.Stderr
	return cmd
}

// Line returns the next line the process prints, or "" when it has ended.
func (p *Player) Line() string {
	if !p.lines.Scan() {
		return ""
	}
	return p.lines.Text()
}

// GoAhead ends what the process reads, which it waits for.
func (p *Player) GoAhead(t testing.TB) {
	t.Helper()
	if err := p.Stdin.Close(); err != nil {
		t.Fatal(err)
	}
}

// Allow has a process that takes a step for each byte of its input take n more.
func (p *Player) Allow(t testing.TB, n int) {
	t.Helper()
	if _, err := p.Stdin.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the process with SIGKILL. Its output until then can still be read.
func (p *Player) Kill(t testing.TB) {
	t.Helper()
	if err := p.Cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// AwaitEnd waits for a process that must succeed, or was killed.
func (p *Player) AwaitEnd(t testing.TB, killed bool) {
	t.Helper()
	for p.lines.Scan() { // Wait closes the pipe
	}
	if err := p.Cmd.Wait(); (err != nil) != killed {
		t.Errorf("process ended with %v, killed %v", err, killed)
	}
}
