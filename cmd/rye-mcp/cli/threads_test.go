package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// testProject is a project of its own, with the system that opened it.
func testProject(t *testing.T) (System, *project) {
	t.Helper()
	dir := realDir(t)
	sys := testSystem(dir, map[string]string{"USER_SPACE": dir})
	p, err := openProject(t.Context(), sys, dir, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return sys, p
}

// register registers a thread of a directive that was created then.
func register(t *testing.T, p *project, directive string, at int64) thread.Record {
	t.Helper()
	rec, _, err := store.Register(t.Context(), p.store, store.NewThread{
		Kind: thread.KindDirective, Directive: directive, Name: directive, Now: time.Unix(at, 0),
	}, func(thread.ID) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// A prefix finds its thread however many newer ones merely contain it, and pages
// are put together to a whole.
func TestCompleteID(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	sys, p := testProject(t)
	register(t, p, "old", 1)
	register(t, p, "twin/a", 2)
	register(t, p, "twin/b", 2)
	for i := range int64(maxListed + 5) {
		register(t, p, fmt.Sprintf("hold%d", i), 1000)
	}
	page, err := listPages(t.Context(), sys, p, operation.ListInput{Limit: maxListed}, false)
	if err != nil || page.Count != maxListed || page.NextCursor == "" {
		t.Errorf("a page: %d threads, next %q, %v", page.Count, page.NextCursor, err)
	}
	all, err := listPages(t.Context(), sys, p, operation.ListInput{Limit: maxListed}, true)
	if err != nil || all.Count != maxListed+8 || len(all.Threads) != all.Count || all.NextCursor != "" {
		t.Errorf("all pages: %d threads, next %q, %v", all.Count, all.NextCursor, err)
	}
	for given, want := range map[string]thread.ID{"old": "old-1", "old-1": "old-1", "twin/a": "twin/a-2", "hold104": "hold104-1000", "latest:old": "old-1", "latest": all.Threads[0].ThreadID} {
		if got, err := completeID(t.Context(), p, given); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %s", given, got, err, want)
		}
	}
	for given, want := range map[string]tool.Code{"wold": tool.CodeNotFound, "latest:none": tool.CodeNotFound, "twin": tool.CodeAmbiguous, "hold": tool.CodeAmbiguous} {
		var fault *tool.Fault
		if got, err := completeID(t.Context(), p, given); !errors.As(err, &fault) || fault.Code != want {
			t.Errorf("%s = %q, %v; want %s", given, got, err, want)
		} else if named := strings.Count(fault.Hint, "-"); want == tool.CodeAmbiguous && named < 2 {
			t.Errorf("%s: %s", given, fault.Hint)
		}
	}
	var usage *usageError
	if _, err := completeID(t.Context(), p, "../x"); !errors.As(err, &usage) {
		t.Errorf("../x: %v", err)
	}
}

// TestWithoutThreads: a command tells what is wrong with it in a project without threads
// too, and not that there are none; looking makes no state there.
func TestWithoutThreads(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		command string
		says    string // what is wrong; empty: nothing is
	}{
		{"list", ""},
		{"list --sort spend --older-than 1d --meta a=1 --text x", ""},
		{"list --sort wat", `--sort "wat"`},
		{"list --status wat", `--status "wat"`},
		{"list --older-than wat", "older_than"},
		{"list --newer-than wat", "newer_than"},
		{"list --meta =1", "KEY=VALUE"},
		{`list --meta a"b=1`, "metadata"},
		{"list --parent nobody", "nobody"},
		{"list --limit 0", "--limit 0"},
		{"cleanup --older-than wat", "--older-than"},
		{"cleanup --older-than 1d --status running", "--status"},
		{"call list_threads sort=wat", "sort"},
		{"call list_threads cursor=wat", "cursor"},
		{"call list_active cursor=wat", "cursor"},
	} {
		dir := realDir(t)
		sys := testSystem(dir, map[string]string{"USER_SPACE": t.TempDir()})
		var out strings.Builder
		sys.Stdout = &out
		cmd := newThreadsCommand(sys, &options{})
		cmd.SetArgs(strings.Fields(test.command))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		switch {
		case test.says == "" && (err != nil || out.String() != "no threads in this project yet\n"):
			t.Errorf("%s: %q, %v", test.command, out.String(), err)
		case test.says != "" && (err == nil || errors.Is(err, errNoThreads) || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%s: %q, %v; want the error to say %q", test.command, out.String(), err, test.says)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s has left %v, %v", test.command, left, err)
		}
	}
}
