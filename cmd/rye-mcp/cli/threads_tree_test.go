package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// forest is a board with each kind of row.
func forest(now time.Time) []*board.Row {
	at := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	limits := &thread.Limits{Turns: 10}
	return []*board.Row{
		{
			Key: "site/build-1772600000", ThreadID: "site/build-1772600900", Links: 2, Kind: thread.KindDirective, Status: thread.Running, Waits: true, Turns: 4, TreeSpend: 1_230_000, Limits: limits,
			Budget: &board.Budget{Limit: 5_000_000, Spent: 230_000, Reserved: 2_000_000, Left: 2_770_000}, Context: &board.Context{Used: 96_000, Window: 200_000}, Name: "Build the site of 日本 and all its pages", CreatedAt: at(90),
		},
		{
			Key: "site/page-1772600100", ThreadID: "site/page-1772600100", Parent: "site/build-1772600000", Status: thread.Running, Asks: true, Turns: 10, TreeSpend: 500_000, Limits: limits,
			Budget: &board.Budget{Limit: 1_000_000, Spent: 500_000, Left: 500_000}, Name: "A page", CreatedAt: at(80),
			Question: &board.Question{
				Text: "10 of 10 turns are used\x1b[2J; the page is not done", Options: []thread.Decision{thread.Raise, thread.Finish, thread.Stop}, Default: thread.Stop, DeadlineAt: now.Add(5 * time.Minute),
			},
		},
		{Key: "site/check-1772600200", ThreadID: "site/check-1772600200", Parent: "site/page-1772600100", Status: thread.Completed, Turns: 2, TreeSpend: 10_000, Name: "Check links", CreatedAt: at(70)},
		{
			Key: "map-1772600300", ThreadID: "map-1772600300", Parent: "site/build-1772600000", Kind: thread.KindSet, Status: thread.Running, CreatedAt: at(60),
			Entries: &board.Entries{Items: 40, Waiting: 20, Working: 2, Completed: 17, Failed: 1}, Budget: &board.Budget{Limit: 1_000_000, Reserved: 100_000, Left: 900_000},
		},
		{Key: "site/image-1772600400", ThreadID: "site/image-1772600400", Parent: "map-1772600300", Status: thread.Running, Stopping: true, Turns: 1, CreatedAt: at(50), Damaged: []string{"thread.json is gone"}},
		{Key: "old-1772500000", ThreadID: "old-1772500000", Status: thread.Error, Turns: 3, TreeSpend: 42, Name: "evil \u202eeman", CreatedAt: at(3000)},
	}
}

// TestTree draws a tree for terminals of several widths, and for what is no terminal.
func TestThreadsTree(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	var all strings.Builder
	for _, width := range []int{0, 60, 80, 120, 160} {
		var out bytes.Buffer
		if err := writeTree(display{out: &out, width: width}, forest(now), width > 0, now); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "-- %d columns --\n%s", width, &out)
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if strings.ContainsAny(line, "\x1b\u202e") || width > 0 && plain.Columns(line) > width && !strings.Contains(line, "asks:") {
				t.Errorf("%d columns: %q", width, line)
			}
			if width == 0 && strings.ContainsAny(line, "│├└─") {
				t.Errorf("no terminal: %q", line)
			}
		}
	}
	golden := filepath.Join("testdata", "tree.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || all.String() != string(want) {
		t.Errorf("%v\n%s\nis not %s: go test ./cmd/rye-mcp/cli -run Tree -update", err, &all, golden)
	}
}

// TestWorkingRows keeps what is above of what works.
func TestWorkingRows(t *testing.T) {
	t.Parallel()
	rows := forest(time.Now())
	rows[0].Status, rows[1].Status = thread.Completed, thread.Completed
	var got []string
	for _, r := range workingRows(rows) {
		got = append(got, string(r.Key[:3]))
	}
	if strings.Join(got, " ") != "sit map sit" {
		t.Errorf("rows %v", got)
	}
}
