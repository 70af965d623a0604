package main_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

const askingProject = `
-- .ai/config/agent/resilience.yaml --
on_limit: {action: ask, deadline_seconds: 300}
-- .ai/directives/loop.md --
` + "```xml" + `
<directive name="loop" version="1.0.0">
  <metadata>
    <model tier="fast" /><limits turns="1" />
    <permissions><execute><tool>rye.file-system.ls</tool></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Go on and on.
-- model.yaml --
turns:
  - match: {first: Go on, turn: 1}
    text: "I look."
    tool_calls:
      - {name: rye_file_system_ls, input: {path: .}}
  - text: "That is what I have."
`

// screenOf is a program on a terminal of its own.
type screenOf struct {
	*place
	cmd    *exec.Cmd
	master *os.File
	before unix.Termios
	slave  *os.File

	mu    sync.Mutex
	shown bytes.Buffer // all that was written to the terminal
	read  chan struct{}
}

// onScreen starts rye-mcp on a terminal of 80 by 24, which is its controlling one.
func (p *place) onScreen(args ...string) *screenOf {
	p.Helper()
	s := &screenOf{place: p, read: make(chan struct{})}
	var err error
	s.master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		p.Skipf("no terminals here: %v", err)
	}
	p.Cleanup(func() { _ = s.master.Close() })
	number, err := unix.IoctlGetInt(int(s.master.Fd()), unix.TIOCGPTN)
	p.noError(err)
	p.noError(unix.IoctlSetPointerInt(int(s.master.Fd()), unix.TIOCSPTLCK, 0))
	s.slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	p.noError(err)
	p.Cleanup(func() { _ = s.slave.Close() })
	p.noError(unix.IoctlSetWinsize(int(s.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	before, err := unix.IoctlGetTermios(int(s.slave.Fd()), unix.TCGETS)
	p.noError(err)
	s.before = *before
	s.cmd = exec.Command(p.program, args...)
	s.cmd.Dir, s.cmd.Env = p.dir, append([]string{"TERM=xterm-256color"}, p.env...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = s.slave, s.slave, s.slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.noError(s.cmd.Start())
	p.Cleanup(func() { _ = s.cmd.Process.Kill() })
	go s.drain()
	return s
}

func (s *screenOf) drain() {
	defer close(s.read)
	piece := make([]byte, 4096)
	for {
		n, err := s.master.Read(piece)
		s.mu.Lock()
		s.shown.Write(piece[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screenOf) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// shows waits until a text was written to the terminal.
func (s *screenOf) shows(text string) {
	s.Helper()
	s.until(func() (bool, string) {
		return strings.Contains(s.text(), text), "nothing shows " + text + ": " + s.text()
	})
}

func (s *screenOf) press(keys string) {
	s.Helper()
	_, err := s.master.WriteString(keys)
	s.noError(err)
}

// ends waits for the program, and checks that the terminal is as it was.
func (s *screenOf) ends(code int) {
	s.Helper()
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.Errorf("it ended with code %d, want %d: %s", got, code, s.text())
	}
	s.shows("\x1b[?1049l") // the alternate screen is left
	s.shows("\x1b[?25h")   // the cursor is there
	after, err := unix.IoctlGetTermios(int(s.slave.Fd()), unix.TCGETS)
	s.noError(err)
	if *after != s.before {
		s.Errorf("the terminal was %+v and is %+v", s.before, *after)
	}
}

// asking runs the directive of [askingProject] until it asks.
func (p *place) asking() (id string) {
	p.Helper()
	h := p.serve()
	answer := must[view.Started](h, "rye_execute", args{"item_type": "directive", "item_id": "loop", "async": true})
	p.until(func() (bool, string) {
		out := p.command("threads", "approve")
		return strings.Contains(out, string(answer.ThreadID)), "it does not ask: " + out
	})
	h.close()
	return string(answer.ThreadID)
}

// A thread that asks is shown, answered with two keys, and ends for it; q gives the
// terminal back.
func TestTopAnswers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, askingProject)
	id := p.asking()
	s := p.onScreen("top")
	s.shows("has reached its limit")
	s.shows("\x1b[?1049h")
	s.press("af")
	p.until(func() (bool, string) {
		out := p.command("threads", "show", id)
		return strings.Contains(out, "completed"), "it was not answered: " + out + s.text()
	})
	if out := p.command("threads", "tail", id, "-n", "50"); !strings.Contains(out, "✓ finish, by a person, with rye-mcp top") {
		t.Errorf("the transcript does not say who has answered:\n%s", out)
	}
	s.press("q")
	s.ends(0)
}

// However the looking ends, the terminal is as it was and the thread still asks.
func TestTopEnds(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, askingProject)
	id := p.asking()
	for name, c := range map[string]struct {
		end  func(*screenOf)
		code int
	}{
		"Ctrl-C":  {func(s *screenOf) { s.press("\x03") }, 0},
		"SIGTERM": {func(s *screenOf) { p.noError(s.cmd.Process.Signal(syscall.SIGTERM)) }, 130},
		"SIGHUP":  {func(s *screenOf) { p.noError(s.cmd.Process.Signal(syscall.SIGHUP)) }, 130},
	} {
		if name == "SIGHUP" && signal.Ignored(syscall.SIGHUP) {
			continue // the tests run below nohup, which top respects
		}
		s := p.onScreen("top")
		s.shows("has reached its limit")
		c.end(s)
		t.Log(name)
		s.ends(c.code)
	}
	if out := p.command("threads", "approve"); !strings.Contains(out, id) {
		t.Errorf("it does not ask any more: %s", out)
	}
}

// Where nothing can be drawn, the threads are lines.
func TestTopLines(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, askingProject)
	id := p.asking()
	s := p.onScreen("top", "--plain")
	s.shows(id + " asks, ")
	s.shows("rye-mcp threads approve " + id)
	if strings.Contains(s.text(), "\x1b") {
		t.Errorf("it draws: %q", s.text())
	}
	p.noError(s.cmd.Process.Signal(syscall.SIGINT))
	if err := s.cmd.Wait(); s.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("%v: %s", err, s.text())
	}
}
