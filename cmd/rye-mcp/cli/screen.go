package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// screen shows a tree of threads: redrawn in place on a terminal, as a line
// for every change elsewhere.
type screen struct {
	display
	heeded *heeding // where it is drawn
	live   bool
	drawn  int                  // lines of the tree on a live screen
	said   map[thread.ID]string // last line written about a thread otherwise
}

func newScreen(at display, live bool) *screen {
	heeded := &heeding{Writer: at.out}
	at.out = heeded
	return &screen{display: at, heeded: heeded, live: live, said: map[thread.ID]string{}}
}

func (s *screen) print(format string, args ...any) {
	s.drawn = 0
	_, _ = fmt.Fprintf(s.out, format, args...)
}

// tree draws the threads, children below their parents.
func (s *screen) tree(threads []view.Summary) {
	lines := treeLines(threads)
	if !s.live {
		for _, l := range lines {
			if text := s.line(l); s.said[l.id] != text {
				s.said[l.id] = text
				_, _ = fmt.Fprintln(s.out, text)
			}
		}
		return
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn) // cursor up
	}
	for _, l := range lines {
		fmt.Fprintf(&b, "\x1b[2K%s\n", s.line(l)) // erase the line first
	}
	s.drawn = len(lines)
	_, _ = io.WriteString(s.out, b.String())
}

type treeLine struct {
	id     thread.ID
	indent string
	thread view.Summary
}

func (s *screen) line(l treeLine) string {
	t, label := l.thread, l.indent+string(l.id)
	return fmt.Sprintf("%s %s %s %2d turns  %s", s.paint(markColor(t), mark(t)), s.paint(dim, l.indent)+string(l.id)+strings.Repeat(" ", max(0, 44-plain.Columns(label))),
		s.paint(markColor(t), fmt.Sprintf("%-9s", stateOf(t.Status, t.Queued, t.Asks, !t.RetryAt.IsZero()))), t.Cost.Turns, t.Cost.Spend)
}

// markColor is that of a thread's state.
func markColor(t view.Summary) color {
	switch {
	case t.Asks:
		return yellow
	case t.Status == thread.Completed:
		return green
	case t.Status == thread.Error, t.Status == thread.Cancelled:
		return red
	case t.Status == thread.Running:
		return cyan
	default:
		return dim
	}
}

// mark is the state of a thread at a glance.
func mark(t view.Summary) string {
	if t.Asks {
		return "?"
	}
	switch t.Status {
	case thread.Completed:
		return "✓"
	case thread.Continued:
		return "⇒"
	case thread.Error, thread.Cancelled:
		return "✗"
	case thread.Running:
		return "●"
	default:
		return "○"
	}
}

// treeLines orders threads as a tree, oldest first on each level.
func treeLines(newestFirst []view.Summary) []treeLine {
	children := map[thread.ID][]view.Summary{}
	known := map[thread.ID]bool{}
	for _, t := range newestFirst {
		known[t.ThreadID] = true
	}
	for i := len(newestFirst) - 1; i >= 0; i-- {
		t := newestFirst[i]
		parent := t.ParentID
		if !known[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], t)
	}
	var lines []treeLine
	var walk func(parent thread.ID, prefix string)
	walk = func(parent thread.ID, prefix string) {
		for i, t := range children[parent] {
			branch, below := "├─ ", "│  "
			if i == len(children[parent])-1 {
				branch, below = "└─ ", "   "
			}
			if parent == "" {
				branch, below = "", ""
			}
			lines = append(lines, treeLine{id: t.ThreadID, indent: prefix + branch, thread: t})
			walk(t.ThreadID, prefix+below)
		}
	}
	walk("", "")
	return lines
}
