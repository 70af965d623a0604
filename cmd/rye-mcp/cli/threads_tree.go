package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// checkTree refuses what a tree is not selected by.
func (f listFlags) checkTree(limited bool) error {
	if !f.tree {
		return nil
	}
	for flag, given := range map[string]bool{
		"--status": len(f.status) > 0, "--directive": f.directive != "", "--text": f.text != "", "--name": f.name != "", "--meta": len(f.meta) > 0,
		"--older-than": f.older != "", "--newer-than": f.newer != "", "--sort": f.sort != "", "--limit": limited, "--all": f.all,
	} {
		if given {
			return &usageError{message: "--tree and " + flag + " contradict each other", try: "--tree with --active or --parent, or a list without --tree"}
		}
	}
	return nil
}

// showTree shows the board of a project, or the part below a thread.
func showTree(ctx context.Context, sys System, opts options, flags listFlags) error {
	b := board.Board{Whole: true, Rows: []*board.Row{}}
	none := "no threads in this project yet"
	err := inProject(ctx, sys, opts, func(ctx context.Context, p *project) (err error) {
		var o board.Options
		if flags.parent != "" {
			if o.Top, err = completeID(ctx, p, flags.parent); err != nil {
				return err
			}
		}
		b, err = p.control.Board.Since(ctx, "", o)
		return err
	})
	if err != nil {
		return err
	}
	if flags.active {
		if len(b.Rows) > 0 {
			none = "no threads match"
		}
		b.Rows = workingRows(b.Rows)
	}
	if flags.json {
		return writeJSON(sys.Stdout, b)
	}
	if len(b.Rows) == 0 {
		_, err = fmt.Fprintln(sys.Stdout, none)
	} else {
		err = writeTree(newDisplay(sys, opts), b.Rows, redraws(sys, sys.Stdout), sys.Now())
	}
	if b.Omitted > 0 && flags.parent == "" && !flags.active {
		_, _ = fmt.Fprintf(sys.Stderr, "%s that ended earlier %s not shown; rye-mcp threads list --all lists all\n", counted(b.Omitted, "thread"), verb(b.Omitted, "is", "are"))
	}
	return err
}

// workingRows are those rows that have not ended, with what is above them.
func workingRows(rows []*board.Row) []*board.Row {
	wanted := map[thread.ID]bool{}
	for _, r := range slices.Backward(rows) { // a parent comes before what is below it
		if !r.Status.Terminal() || wanted[r.Key] {
			wanted[r.Key], wanted[r.Parent] = true, true
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r *board.Row) bool { return !wanted[r.Key] })
}

// writeTree writes a line for each row, and below that what asks and what is damaged. Lines
// without marks name what they are below of: a screen reader reads them so.
func writeTree(d display, rows []*board.Row, marks bool, now time.Time) error {
	t := table{header: []string{"THREAD", "STATUS", "TURNS", "SPEND", "RESERVED", "LEFT", "CONTEXT", "AGE", "NAME"}}
	below := !marks && slices.ContainsFunc(rows, func(r *board.Row) bool { return r.Parent != "" })
	if below {
		t.header = append(t.header, "BELOW")
	}
	branches := branchesOf(rows, marks)
	newest := map[thread.ID]thread.ID{}
	for i, r := range rows {
		newest[r.Key] = r.ThreadID
		cells := []cell{
			text(string(r.ThreadID)), {treeState(r), stateColor(r.Status)}, text(ofLimit(r.Turns, r.Limits)), text(r.TreeSpend.String()),
			text(reserved(r.Budget)), text(leftOf(r)), text(contextShare(r.Context)), text(plain.Age(now.Sub(r.CreatedAt))), text(r.Name),
		}
		if below {
			cells = append(cells, text(string(newest[r.Parent])))
		}
		t.add(cells...)
		t.rows[i][0].text = branches[i] + t.rows[i][0].text
	}
	t.dropEmpty("RESERVED", "LEFT", "CONTEXT", "NAME")
	t.shortenTo("NAME", d.width)
	for _, name := range []string{"NAME", "CONTEXT", "RESERVED", "AGE", "TURNS", "LEFT", "SPEND"} {
		if d.width > 0 && t.width() > d.width {
			t.drop(name)
		}
	}
	wide := d.width
	if t.width() > d.width {
		d.width = 0 // ids are there to be copied
	}
	if err := t.write(d); err != nil {
		return err
	}
	d.width = wide
	return writeTreeNotes(d, rows, now)
}

// branchesOf are the marks before each row.
func branchesOf(rows []*board.Row, marks bool) []string {
	branches := make([]string, len(rows))
	if !marks {
		return branches
	}
	last := map[thread.ID]thread.ID{} // the last row below each
	for _, r := range rows {
		last[r.Parent] = r.Key
	}
	within := map[thread.ID]string{} // what stands before the rows below each
	for i, r := range rows {
		above, shown := within[r.Parent]
		if r.Parent == "" || !shown {
			within[r.Key] = ""
			continue
		}
		if last[r.Parent] == r.Key {
			branches[i], within[r.Key] = above+"└─ ", above+"   "
			continue
		}
		branches[i], within[r.Key] = above+"├─ ", above+"│  "
	}
	return branches
}

func treeState(r *board.Row) string {
	state := stateOf(r.Status, r.Queued, r.Asks, r.RetryAt != nil)
	switch {
	case r.Stopping:
		state = "stopping"
	case r.Waits && !r.Asks:
		state = "waits"
	}
	if e := r.Entries; e != nil {
		state += fmt.Sprintf(" %d/%d", e.Completed+e.Failed, e.Items)
	}
	return state
}

func ofLimit(turns int, limits *thread.Limits) string {
	if limits == nil || limits.Turns == 0 {
		return strconv.Itoa(turns)
	}
	return fmt.Sprintf("%d/%d", turns, limits.Turns)
}

func reserved(b *board.Budget) string {
	if b == nil || b.Reserved == 0 {
		return ""
	}
	return b.Reserved.String()
}

// leftOf is what a thread may still spend, while it works.
func leftOf(r *board.Row) string {
	if r.Budget == nil || r.Status.Terminal() {
		return ""
	}
	return r.Budget.Left.String()
}

func contextShare(c *board.Context) string {
	if c == nil || c.Window <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", 100*c.Used/c.Window)
}

// writeTreeNotes says what waits for an answer, and of what not everything can be told.
func writeTreeNotes(d display, rows []*board.Row, now time.Time) error {
	var b strings.Builder
	for _, r := range rows {
		if q := r.Question; q != nil {
			fmt.Fprintf(&b, "%s %s\n", d.paint(yellow, string(r.ThreadID)+" asks:"), plain.Shorten(plain.Line(q.Text), cmp.Or(d.width, len(q.Text)+1)))
			fmt.Fprintf(&b, "  %s; %s in %s\n", plain.Line(joined(q.Options)), plain.Line(string(q.Default)), plain.Age(q.DeadlineAt.Sub(now)))
			fmt.Fprintf(&b, "  rye-mcp threads approve %s\n", r.ThreadID)
		}
		for _, what := range r.Damaged {
			fmt.Fprintf(&b, "%s %s\n", d.paint(red, string(r.ThreadID)+":"), plain.Line(what))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(d.out, "\n"+b.String())
	return err
}
