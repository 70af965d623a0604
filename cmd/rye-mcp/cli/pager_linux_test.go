package cli

import (
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
)

// openTerminal opens a terminal of so many lines; text written to it comes out of the
// first file.
func openTerminal(t *testing.T, rows, cols uint16) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return master, terminal
}

// shownOn is what a terminal shows of what is written to it.
func shownOn(t *testing.T, rows, cols uint16, env map[string]string, write func(System) error) string {
	t.Helper()
	master, terminal := openTerminal(t, rows, cols)
	sys := System{Stdout: terminal, Stderr: terminal, Environ: os.Environ(), Getenv: func(name string) string { return env[name] }}
	wrote := make(chan error, 1)
	go func() {
		wrote <- write(sys)
		_ = terminal.Close()
	}()
	out, _ := io.ReadAll(master) // its end is an error on Linux
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

func TestPager(t *testing.T) {
	t.Parallel()
	const text = "one\ntwo\nthree\nfour\n"
	for name, c := range map[string]struct {
		rows  uint16
		env   map[string]string
		shown string
	}{
		"longer than the screen":   {4, map[string]string{"PAGER": "sed s/^/paged:/"}, "paged:one\npaged:two\npaged:three\npaged:four\n"},
		"as long as fits":          {5, map[string]string{"PAGER": "sed s/^/paged:/"}, text},
		"no pager wanted":          {2, map[string]string{"PAGER": "cat"}, text},
		"a terminal that is dumb":  {2, map[string]string{"PAGER": "sed s/^/paged:/", "TERM": "dumb"}, text},
		"a terminal without lines": {0, map[string]string{"PAGER": "sed s/^/paged:/"}, text},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := shownOn(t, c.rows, 40, c.env, func(sys System) error { return page(t.Context(), sys, text) }); got != c.shown {
				t.Errorf("shown %q, want %q", got, c.shown)
			}
		})
	}
	got := shownOn(t, 2, 40, map[string]string{"PAGER": "no-such-pager"}, func(sys System) error { return page(t.Context(), sys, text) })
	if !strings.HasSuffix(got, text) {
		t.Errorf("a pager that is not there: %q", got)
	}
}

// A guide is as wide as the terminal and coloured on it, if its user wants that.
func TestHelpOnTerminal(t *testing.T) {
	t.Parallel()
	show := func(sys System) error {
		return topic(t.Context(), newRoot(System{}), sys, options{color: colorAuto}, "first-directive")
	}
	narrow := shownOn(t, 0, 40, nil, show)
	if !strings.HasPrefix(narrow, string(bold)+"The") {
		t.Errorf("no colours: %q", narrow)
	}
	bare := shownOn(t, 0, 40, map[string]string{"NO_COLOR": "1"}, show)
	if strings.Contains(bare, "\x1b") || strings.Contains(narrow, "`init`") || !strings.Contains(bare, "`init`") {
		t.Errorf("NO_COLOR: %q", bare)
	}
	prose, _, _ := strings.Cut(bare, "Begin\n")
	for line := range strings.Lines(prose) {
		if plain.Columns(strings.TrimSuffix(line, "\n")) > 40 {
			t.Errorf("wider than the terminal: %q", line)
		}
	}
}
