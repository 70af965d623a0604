package cli

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func summaryOf(id, parent thread.ID, status thread.State, turns int) view.Summary {
	return view.Summary{ThreadID: id, ParentID: parent, Status: status, Cost: thread.Cost{Turns: turns}}
}

// plainLine is a line of the tree without colours.
func plainLine(l treeLine) string { return newScreen(display{}, false).line(l) }

func TestTree(t *testing.T) {
	t.Parallel()
	newestFirst := []view.Summary{
		summaryOf("c-1", "root-1", thread.Error, 1),
		summaryOf("b1-1", "b-1", thread.Created, 0),
		summaryOf("b-1", "root-1", thread.Running, 2),
		summaryOf("a-1", "root-1", thread.Completed, 3),
		summaryOf("root-1", "", thread.Running, 4),
		summaryOf("stray-1", "not-listed-1", thread.Cancelled, 0),
	}
	var got []string
	for _, line := range treeLines(newestFirst) {
		got = append(got, line.indent+string(line.id))
	}
	want := "stray-1\nroot-1\n├─ a-1\n├─ b-1\n│  └─ b1-1\n└─ c-1"
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("tree:\n%s\nwant:\n%s", text, want)
	}
	for i, mark := range []string{"✗", "●", "✓", "●", "○", "✗"} {
		if line := plainLine(treeLines(newestFirst)[i]); !strings.HasPrefix(line, mark) {
			t.Errorf("line %d is %q, want it to begin with %s", i, line, mark)
		}
	}
	asking := summaryOf("a-1", "", thread.Running, 1)
	asking.Asks = true
	for want, s := range map[string]view.Summary{"? a-1": asking, "⇒ a-1": summaryOf("a-1", "", thread.Continued, 1)} {
		if line := plainLine(treeLines([]view.Summary{s})[0]); !strings.HasPrefix(line, want) {
			t.Errorf("%q, want it to begin with %s", line, want)
		}
	}
	if lines := treeLines(nil); len(lines) != 0 {
		t.Errorf("no threads: %v", lines)
	}
}

// Without a terminal a line is written for every change and for nothing else;
// on one the tree is drawn over itself.
func TestScreen(t *testing.T) {
	t.Parallel()
	before := []view.Summary{summaryOf("a-1", "root-1", thread.Running, 0), summaryOf("root-1", "", thread.Running, 1)}
	after := []view.Summary{summaryOf("a-1", "root-1", thread.Completed, 1), summaryOf("root-1", "", thread.Running, 1)}
	var plain, live strings.Builder
	for out, s := range map[*strings.Builder]*screen{&plain: newScreen(display{out: &plain}, false), &live: newScreen(display{out: &live}, true)} {
		s.tree(before)
		s.tree(before)
		s.tree(after)
		s.print("end\n")
		s.tree(after)
		if out.Len() == 0 {
			t.Fatal("nothing is drawn")
		}
	}
	if lines := strings.Count(plain.String(), "\n"); lines != 4 || strings.Contains(plain.String(), "\x1b") {
		t.Errorf("%d lines, want two threads, one change and the end:\n%s", lines, plain.String())
	}
	if up := strings.Count(live.String(), "\x1b[2A"); up != 2 {
		t.Errorf("the tree is drawn over itself %d times, want 2: %q", up, live.String())
	}
}
