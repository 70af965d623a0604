package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// follow looks for turn after turn of a thread, only when it is told to, and
// sends each turn it saw.
func follow(ctx context.Context, s *Store, id thread.ID, turns int, seen chan<- error) {
	wake := s.Changes(ctx)
	for turn := 0; turn < turns; {
		rec, err := s.Get(ctx, id)
		for ; turn < rec.Cost.Turns; turn++ {
			seen <- err
		}
		if err != nil {
			seen <- err
			return
		}
		if turn < turns {
			<-wake
		}
	}
}

// lead writes turn after turn and waits for each to be seen.
func lead(t *testing.T, s *Store, id thread.ID, turns int, seen <-chan error) {
	t.Helper()
	for turn := 1; turn <= turns; turn++ {
		if err := s.RecordCost(t.Context(), id, thread.Cost{Turns: turn}, 0); err != nil {
			t.Fatal(err)
		}
		if err := <-seen; err != nil {
			t.Fatalf("turn %d: %v", turn, err)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	const turns = 200
	for name, opts := range map[string]Options{
		"told by the system": unpolled,
		"polled":             {Poll: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			dir := t.TempDir()
			writer, reader := open(t, dir, Options{}), open(t, dir, opts)
			id := running(t, writer, "d", "")
			seen := make(chan error)
			go follow(ctx, reader, id, turns, seen)
			lead(t, writer, id, turns, seen)
		})
	}
}

// TestWritersPoke: the lock of the queue alone tells of a commit, which is visible
// by then.
func TestWritersPoke(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, reader := open(t, dir, Options{}), open(t, dir, Options{})
	id := running(t, s, "d", "")
	files, err := watchFiles(lockPath(dir, names[registryFile]))
	if err != nil {
		t.Skipf("nothing can be watched here: %v", err)
	}
	defer files.Close() //nolint:errcheck // it only read
	for turn := 1; turn <= 20; turn++ {
		done := make(chan error, 1)
		go func() { done <- s.RecordCost(t.Context(), id, thread.Cost{Turns: turn}, 0) }()
		<-files.Events
		if rec, err := reader.Get(t.Context(), id); err != nil || rec.Cost.Turns != turn {
			t.Errorf("turn %d after the report of %d, %v", rec.Cost.Turns, turn, err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestChangesWithoutTheLog: when the log cannot be watched the poll goes on.
func TestChangesWithoutTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	id := running(t, s, "d", "")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	w := newWatch(ctx, s.registry.path, time.Hour)
	if w.files == nil {
		t.Fatal("the log was not watched")
	}
	if err := w.files.Close(); err != nil {
		t.Fatal(err)
	}
	w.files = nil
	told, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		w.run(ctx, func() { told <- struct{}{} })
	}()
	for turn := range 3 {
		if err := s.RecordCost(ctx, id, thread.Cost{Turns: turn}, 0); err != nil {
			t.Fatal(err)
		}
		<-told
	}
	cancel()
	<-ended
}

// TestLooksFollowAReport: the commit behind a report may become visible only
// after the report. A watch without a database tells at every look.
func TestLooksFollowAReport(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	writeFile(t, path, "")
	identity, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		reported := 10 * time.Second
		var looks []time.Duration
		begin := time.Now()
		events := make(chan fsnotify.Event)
		time.AfterFunc(reported, func() { events <- fsnotify.Event{Op: fsnotify.Write} })
		w := &watch{path: path, identity: identity}
		w.look(ctx, 25*time.Second, events, nil, func() { looks = append(looks, time.Since(begin)) })

		var want []time.Duration
		series := func(from, after time.Duration) {
			for ; after <= 2*lastLook-firstLook; after = 2*after + firstLook {
				want = append(want, from+after)
			}
		}
		series(0, firstLook)
		series(reported, 0)
		want = append(want, 25*time.Second, 50*time.Second)
		if !slices.Equal(looks, want) {
			t.Errorf("looked at %v, want %v", looks, want)
		}
	})
}

// TestWatchOfNothing: what cannot be looked at wakes whoever listens.
func TestWatchOfNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	path := t.TempDir() + "/folder"
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	w := newWatch(ctx, path, time.Hour)
	told, ended := make(chan struct{}, 1000), make(chan struct{})
	go func() {
		defer close(ended)
		w.run(ctx, func() { told <- struct{}{} })
	}()
	<-told
	cancel()
	<-ended
}
