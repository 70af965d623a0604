package memory_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/memory"
	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	entries "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

// mortal is an index whose process is killed right after so many writes.
type mortal struct {
	*rag.Index

	left int
}

func (m *mortal) wrote() {
	if m.left--; m.left == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it is delivered
	}
}

func (m *mortal) Store(ctx context.Context, rows []rag.Row) (rag.Stored, error) {
	defer m.wrote()
	return m.Index.Store(ctx, rows)
}

func (m *mortal) Delete(ctx context.Context, d rag.Deletion) (int, error) {
	defer m.wrote()
	return m.Index.Delete(ctx, d)
}

// forgetterEnv names the database in a process that forgets a thread; after how many writes
// it dies follows.
const forgetterEnv = "RYE_TEST_MEMORY_FORGETTER"

// TestForgetThreadKilled: a process that takes a thread's entries away is killed after each
// of its writes. When that is repeated nothing of the thread is left, what others said is,
// and what it superseded stands again.
func TestForgetThreadKilled(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if path := os.Getenv(forgetterEnv); path != "" {
		s := sceneIn(t, path, place.NewSeal(newKey(t, 1), "here"))
		left, err := strconv.Atoi(os.Getenv(forgetterEnv + "_AFTER"))
		if err != nil {
			t.Fatal(err)
		}
		s.Index = &mortal{s.index, left}
		if err := s.ForgetThread(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		return
	}
	const most = 40
	for after := 1; ; after++ {
		if after > most {
			t.Fatal("it never comes to an end")
		}
		if died := forgetAndDie(t, after); !died {
			if after < 5 {
				t.Errorf("only %d writes", after-1)
			}
			return
		}
	}
}

// forgetAndDie reports whether the process died before it came to its end.
func forgetAndDie(t *testing.T, after int) (died bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memory.db")
	s := sceneIn(t, path, place.NewSeal(newKey(t, 1), "here"))
	s.write(threadWriter("one"), entries.Discovery, "Shared", "the linter needs a config file in the root")
	s.write(threadWriter("two"), entries.Discovery, "Shared", "the linter needs a config file in the root")
	s.write(threadWriter("two"), entries.Discovery, "Second", "the cache of modules is not kept between runs")
	s.write(threadWriter("one"), entries.Discovery, "Second", "the cache of modules is not kept between runs")
	old := s.write(threadWriter("two"), entries.Decision, "Old", "ids of games are integers")
	s.write(threadWriter("one"), entries.Decision, "New", "ids of games are made by the clients", old.Key)
	s.write(threadWriter("one"), entries.Discovery, "Alone", "tests of the parser take nine minutes")

	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestForgetThreadKilled$")
	cmd.Env = append(os.Environ(), forgetterEnv+"="+path, forgetterEnv+"_AFTER="+strconv.Itoa(after), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if died = status.Signaled(); err != nil && !died {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := s.ForgetThread(t.Context(), "one"); err != nil {
		t.Fatalf("again, after %d writes: %v", after, err)
	}
	got := s.titles()
	slices.Sort(got)
	if !slices.Equal(got, []string{"Old", "Second", "Shared"}) {
		t.Errorf("after %d writes there are %q", after, got)
	}
	for _, space := range []string{memory.Namespace, memory.SaidSpace} {
		rows, err := s.index.List(t.Context(), rag.Listing{Namespace: space, Project: rag.AllProjects, ThreadIDs: []string{"one"}})
		if err != nil || len(rows) != 0 {
			t.Errorf("after %d writes %d rows of it in %s, %v", after, len(rows), space, err)
		}
	}
	if keys, err := s.Damaged(t.Context()); err != nil || len(keys) != 0 {
		t.Errorf("after %d writes damaged: %q %v", after, keys, err)
	}
	return died
}
