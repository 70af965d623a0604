package watch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, parts ...string) {
	t.Helper()
	path := filepath.Join(parts...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// start watches, and returns what is signalled after changes.
func start(t *testing.T, roots resolve.Roots) <-chan struct{} {
	t.Helper()
	w, err := watch.New(roots, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	changed, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}()
	t.Cleanup(func() { stop(); <-ended })
	return changed
}

func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	project, user := t.TempDir(), t.TempDir()
	write(t, project, ".ai/directives/team/old.md")
	changed := start(t, resolve.Roots{Project: project, User: user})
	directives := filepath.Join(project, ".ai/directives")
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"a file is written", func() error { write(t, directives, "new.md"); return nil }},
		{"in a folder", func() error { write(t, directives, "team/new.md"); return nil }},
		{"it is removed", func() error { return os.Remove(filepath.Join(directives, "team/new.md")) }},
		{"it is renamed", func() error {
			return os.Rename(filepath.Join(directives, "new.md"), filepath.Join(directives, "newer.md"))
		}},
		{"a folder is made", func() error { return os.MkdirAll(filepath.Join(directives, "deep/er"), 0o700) }},
		{"a kind comes", func() error { write(t, project, ".ai/tools/x.py"); return nil }},
		{"a space comes", func() error { return os.Mkdir(filepath.Join(user, ".ai"), 0o700) }},
		{"with items", func() error { write(t, user, ".ai/knowledge/mine.md"); return nil }},
		{"a key is trusted", func() error { write(t, user, ".ai/config/keys/trusted/k.toml"); return nil }},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		<-changed
		t.Log(step.what)
		// News of this step has been told when the next begins.
		drain(t, changed, directives)
	}
}

// drain waits until the changes so far are told: one more is, and after it none.
func drain(t *testing.T, changed <-chan struct{}, folder string) {
	t.Helper()
	for range 3 {
		write(t, folder, "mark.md")
		<-changed
	}
}

func TestSpaceThatIsNotThere(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	changed := start(t, resolve.Roots{Project: project, User: filepath.Join(project, "nowhere")})
	write(t, project, "main.go") // nobody hears of it
	write(t, project, ".ai/directives/new.md")
	<-changed
}

// TestAttackFolders: a repository has more folders of items than a user may watch. A thousand are watched, and the server goes on.
func TestAttackFolders(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	for n := range 1500 {
		if err := os.MkdirAll(filepath.Join(project, ".ai/directives", fmt.Sprintf("d%04d", n)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w, err := watch.New(resolve.Roots{Project: project}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if n := w.Watched(); n > watch.MaxFolders || n < watch.MaxFolders-10 {
		t.Errorf("%d folders are watched, want at most %d", n, watch.MaxFolders)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	w.Run(ended, func() {})
}

func TestShared(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	write(t, project, ".ai/directives/old.md")
	s := watch.NewShared(resolve.Roots{Project: project})
	defer s.Close()
	first, second := make(chan struct{}, 9), make(chan struct{}, 9)
	listen := func(to chan struct{}) func() {
		stop, err := s.Listen(func() { to <- struct{}{} })
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	leave, stay := listen(first), listen(second)
	write(t, project, ".ai/directives/new.md")
	<-first
	<-second
	leave()
	leave() // once more does nothing
	write(t, project, ".ai/directives/newer.md")
	<-second
	if len(first) > 0 {
		t.Error("told after it left")
	}
	stay()
	again := listen(first) // the watch stands again
	write(t, project, ".ai/directives/newest.md")
	<-first
	again()
}

// TestSharedCallsInTurn: while a watch that was ended still calls, the next one waits with it.
func TestSharedCallsInTurn(t *testing.T) {
	t.Parallel()
	s := watch.NewShared(resolve.Roots{Project: t.TempDir()})
	defer s.Close()
	var inside, calls atomic.Int32
	stop, err := s.Listen(func() {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d calls at once", n)
		}
		calls.Add(1)
		for range 100 {
			runtime.Gosched() // a caller that does not wait gets here
		}
		inside.Add(-1)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var watches sync.WaitGroup
	for range 8 {
		watches.Go(s.Tell)
	}
	watches.Wait()
	if n := calls.Load(); n < 8 {
		t.Errorf("%d calls of 8", n)
	}
}
