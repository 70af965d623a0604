package top

import (
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/tail"
	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// style is how a text looks.
type style struct {
	color         int // of the 256 of xterm; 0: the terminal's own
	bold, reverse bool
}

// Render is a text with the sequences of ECMA-48 (8.3.117, SGR) around it.
func (s style) Render(text string) string {
	var codes []string
	if s.bold {
		codes = append(codes, "1")
	}
	if s.reverse {
		codes = append(codes, "7")
	}
	if s.color > 0 {
		codes = append(codes, fmt.Sprintf("38;5;%d", s.color))
	}
	if len(codes) == 0 || text == "" {
		return text
	}
	return "\x1b[" + strings.Join(codes, ";") + "m" + text + "\x1b[m"
}

// styles are how things look. Nothing is told by a colour alone.
type styles struct {
	text, dim, title, chosen, rule style
	good, bad, asks, live, tool    style
}

// newStyles are those of a light or a dark terminal; without colours bold and reverse are
// left.
func newStyles(colors, light bool) styles {
	bold := style{bold: true}
	if !colors {
		return styles{title: bold, chosen: style{reverse: true}, bad: bold, asks: bold}
	}
	// Chosen for a contrast of 4.5 and more on white and on black.
	pick := func(onLight, onDark int) style {
		if light {
			return style{color: onLight}
		}
		return style{color: onDark}
	}
	s := styles{
		title: bold, chosen: style{reverse: true}, dim: pick(241, 246), rule: pick(244, 240),
		good: pick(22, 114), bad: pick(124, 210), asks: pick(94, 221), live: pick(25, 117), tool: pick(30, 80),
	}
	s.bad.bold, s.asks.bold = true, true
	return s
}

// stateOf is how a thread stands, in a word, its sign and its style.
func (s styles) stateOf(row *board.Row) (word, sign string, look style) {
	switch {
	case row.Question != nil || row.Asks:
		return "asks", "?", s.asks
	case row.RetryAt != nil:
		return "retries", "○", s.bad
	case row.Queued:
		return "queued", "○", s.dim
	case row.Stopping && !row.Status.Terminal():
		return "stopping", "✗", s.bad
	case row.Waits && !row.Status.Terminal():
		return "waits", "●", s.live
	}
	switch row.Status {
	case thread.Created:
		return "created", "○", s.dim
	case thread.Running:
		return "running", "●", s.live
	case thread.Completed:
		return "completed", "✓", s.good
	case thread.Continued:
		return "continued", "⇒", s.good
	case thread.Error, thread.Cancelled:
		return string(row.Status), "✗", s.bad
	}
	return string(row.Status), "·", s.text
}

// ofKind is the style of a line of a page.
func (s styles) ofKind(k tail.Kind) style {
	switch k {
	case tail.Call, tail.Child, tail.Continued:
		return s.tool
	case tail.Failure, tail.Failed, tail.Trouble:
		return s.bad
	case tail.Question, tail.Warning, tail.Retry:
		return s.asks
	case tail.Answer, tail.Ended:
		return s.good
	case tail.Prompt, tail.Result, tail.Turn, tail.Note, tail.Head:
		return s.dim
	case tail.Words, tail.Told:
		return s.text
	}
	return s.text
}
