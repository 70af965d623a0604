package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"
)

// onTerminal reports whether a stream is a terminal.
func onTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// terminalWidth is how many columns a stream shows; 0 when it is no terminal or
// does not say.
func terminalWidth(stream any) int {
	f, ok := stream.(*os.File)
	if !ok || !onTerminal(stream) {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// colorMode is the flag --color.
type colorMode string

const (
	colorAuto   colorMode = "auto"
	colorAlways colorMode = "always"
	colorNever  colorMode = "never"
)

func colorModes() []string {
	return []string{string(colorAuto), string(colorAlways), string(colorNever)}
}

func (m *colorMode) String() string { return string(*m) }

// Type names the values in the help.
func (m *colorMode) Type() string { return "when" }

// Set takes a value of the flag.
func (m *colorMode) Set(s string) error {
	if !slices.Contains(colorModes(), s) {
		return fmt.Errorf("want %s", strings.Join(colorModes(), ", "))
	}
	*m = colorMode(s)
	return nil
}

// redraws reports whether lines can be drawn over on a stream: a terminal that
// knows more than to print.
func redraws(sys System, stream any) bool {
	return onTerminal(stream) && sys.Getenv("TERM") != "dumb"
}

// display is where a command shows its answer to a person.
type display struct {
	out    io.Writer
	width  int // columns; 0: no bound
	colors bool
}

// newDisplay looks at what standard output is. Colours are for terminals that
// know them and people who have not asked for none (https://no-color.org), or
// for whoever asks for them.
func newDisplay(sys System, opts options) display { return newDisplayOn(sys, sys.Stdout, opts) }

// newDisplayOn is newDisplay for another stream.
func newDisplayOn(sys System, out io.Writer, opts options) display {
	d := display{out: out, width: terminalWidth(out)}
	switch opts.color {
	case colorAlways:
		d.colors = true
	case colorNever:
	default:
		d.colors = redraws(sys, out) && sys.Getenv("NO_COLOR") == ""
	}
	return d
}

// color is an escape sequence that changes how text looks; empty for none.
type color string

// Colours; reset ends them.
const (
	uncolored color = ""
	green     color = "\x1b[32m"
	red       color = "\x1b[31m"
	yellow    color = "\x1b[33m"
	cyan      color = "\x1b[36m"
	dim       color = "\x1b[2m"
	reset           = "\x1b[0m"
)

// paint colours a text that is shown.
func (d display) paint(c color, text string) string {
	if !d.colors || c == uncolored || text == "" {
		return text
	}
	return string(c) + text + reset
}
