//go:build unix

package search_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
)

// The test binary is a process that searches and is killed, or has no room, when
// these are set; see TestCrashWalk and TestFullDisk.
const (
	crashDir  = "RYE_SEARCH_CRASH_DIR"
	crashStep = "RYE_SEARCH_CRASH_STEP"
	fullDir   = "RYE_SEARCH_FULL_DIR"
)

// TestCrashWalk kills a process at each step of making, changing and replacing an
// index. The next search finds everything.
func TestCrashWalk(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if dir := os.Getenv(crashDir); dir != "" {
		crash(t, dir)
		return
	}
	before := map[string]func(t *testing.T, path string){
		"no index": func(*testing.T, string) {},
		"damaged":  func(t *testing.T, path string) { overwrite(t, path, bytes.Repeat([]byte("garbage "), 4096), 0) },
		"older":    func(t *testing.T, path string) { execute(t, path, "PRAGMA user_version = 1") },
	}
	for name, prepare := range before {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for step := 1; ; step++ {
				w := newWorld(t, notes(260))
				x := w.open()
				if err := x.Close(); err != nil {
					t.Fatal(err)
				}
				prepare(t, w.db)
				killed := childOf(t, "TestCrashWalk", crashDir+"="+filepath.Dir(w.roots.Project), crashStep+"="+strconv.Itoa(step))
				page := find(t, w.open(), search.Query{Text: "*", Limit: 1})
				changed := find(t, w.open(), search.Query{Text: "changed OR gone"})
				if page.Total < 260 || page.Index != "" || killed && changed.Total > 1 || !killed && page.Total != 260 {
					t.Errorf("killed at step %d: %d items, %d changed, index %q", step, page.Total, changed.Total, page.Index)
				}
				if !killed {
					break
				}
			}
		})
	}
}

// crash indexes, then again after a file has changed, one has gone and one has come.
// It ends in the middle.
func crash(t *testing.T, dir string) {
	left, err := strconv.Atoi(os.Getenv(crashStep))
	if err != nil {
		t.Fatal(err)
	}
	roots := resolve.Roots{Project: filepath.Join(dir, "project"), User: filepath.Join(dir, "user")}
	x, err := search.OpenWith(context.Background(), filepath.Join(dir, "cache", "index of ?#%41.db"), resolve.New(roots), search.TestOptions{
		Patience: time.Minute, Step: func(string) {
			if left--; left == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	find(t, x, search.Query{Text: "*"})
	folder := filepath.Join(roots.Project, ".ai", "knowledge")
	for name, text := range map[string]string{"n0001.md": "changed, and longer than before", "new.md": "common"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(knowledge("Note", "", text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(folder, "n0002.md")); err != nil {
		t.Fatal(err)
	}
	find(t, x, search.Query{Text: "*"})
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// childOf runs a test in a process of its own, and reports whether it was killed.
func childOf(t *testing.T, test string, env ...string) (killed bool) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	child.Env = append(os.Environ(), env...)
	out, err := child.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if ok && exit.Sys().(syscall.WaitStatus).Signaled() {
		return true
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// TestFullDisk searches where nothing can be written any more after a few pages: the
// index goes on in memory, and says why.
func TestFullDisk(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if dir := os.Getenv(fullDir); dir != "" {
		searchWithoutRoom(t, dir)
		return
	}
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("project/knowledge/n%04d.md", i)] = knowledge("Note", "", strings.Repeat(fmt.Sprintf("common word%d ", i), 50))
	}
	w := newWorld(t, files)
	childOf(t, "TestFullDisk", fullDir+"="+filepath.Dir(w.roots.Project))
	x := w.open() // and there is room again
	if page := find(t, x, search.Query{Text: "common"}); page.Total != 300 || x.InMemory() != nil {
		t.Errorf("%d found, in memory: %v", page.Total, x.InMemory())
	}
}

func searchWithoutRoom(t *testing.T, dir string) {
	signal.Ignore(syscall.SIGXFSZ) // a write that has no room fails
	const room = 64 << 10
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room}); err != nil {
		t.Fatal(err)
	}
	roots := resolve.Roots{Project: filepath.Join(dir, "project"), User: filepath.Join(dir, "user")}
	x, err := search.Open(context.Background(), filepath.Join(dir, "cache", "index of ?#%41.db"), resolve.New(roots))
	if err != nil {
		t.Fatal(err)
	}
	page := find(t, x, search.Query{Text: "common"})
	for page.Building > 0 {
		page = find(t, x, search.Query{Text: "common"})
	}
	if page.Total != 300 || x.InMemory() == nil {
		t.Errorf("%d found, in memory: %v", page.Total, x.InMemory())
	}
	got := ids(find(t, x, search.Query{Text: "word17"}))
	if !slices.Equal(got, []string{"project/knowledge/n0017"}) {
		t.Errorf("found %v", got)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}
