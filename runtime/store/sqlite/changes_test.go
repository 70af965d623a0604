package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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
	const turns = hasty + 5 // the last come in peace
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
	files, err := watchFile(lockPath(dir, names[registryFile]))
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

// watched runs a watch that is polled only as often as is said, and sends what it
// tells. The watch ends with the test.
func watched(t *testing.T, s *Store, poll time.Duration, change func(*watch)) (told <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := newWatch(ctx, s.registry, poll)
	change(w)
	news, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		w.run(ctx, func() {
			select {
			case news <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return news
}

// deaf takes the reports of the operating system from a watch.
func deaf(t *testing.T) func(*watch) {
	t.Helper()
	return func(w *watch) {
		if w.files == nil {
			t.Fatal("the commits are not watched")
		}
		if err := w.files.Close(); err != nil {
			t.Fatal(err)
		}
		w.files = nil
	}
}

// TestChangesWithoutReports: the number of commits is enough.
func TestChangesWithoutReports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, other := open(t, dir, unpolled), open(t, dir, unpolled)
	id := running(t, s, "d", "")
	told := watched(t, s, time.Hour, deaf(t))
	for turn := range 3 {
		if err := other.RecordCost(t.Context(), id, thread.Cost{Turns: turn}, 0); err != nil {
			t.Fatal(err)
		}
		<-told
	}
}

// TestChangesOfStrangers: what is committed by somebody who does not count is
// told, with reports and without.
func TestChangesOfStrangers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*watch){"watched": func(*watch) {}, "polled": deaf(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir(), Options{Poll: time.Millisecond})
			id := running(t, s, "d", "")
			told := watched(t, s, time.Millisecond, change)
			for turn := 1; turn <= 3; turn++ {
				if _, err := s.registry.writer.ExecContext(t.Context(), "UPDATE threads SET turns = ?", turn); err != nil {
					t.Fatal(err)
				}
				for seen := 0; seen < turn; {
					<-told
					rec, err := s.Get(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					seen = rec.Cost.Turns
				}
			}
		})
	}
}

// TestChangesBesideALostLock: whoever comes after the file of the lock was removed
// counts in another one.
func TestChangesBesideALostLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{Poll: time.Millisecond})
	id := running(t, s, "d", "")
	told := watched(t, s, time.Millisecond, func(*watch) {})
	if err := os.Remove(lockPath(dir, names[registryFile])); err != nil {
		t.Fatal(err)
	}
	other := open(t, dir, Options{Poll: time.Millisecond})
	for turn := 1; turn <= 3; turn++ {
		for i, from := range []*Store{other, s} {
			if err := from.RecordCost(t.Context(), id, thread.Cost{Turns: 2*turn + i}, 0); err != nil {
				t.Fatal(err)
			}
			for seen := 0; seen < 2*turn+i; {
				<-told
				rec, err := s.Get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				seen = rec.Cost.Turns
			}
		}
	}
}

// TestStormOfReports: some are passed on at once, then one at a time. What is no
// commit is not passed on.
func TestStormOfReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		reports := make(chan fsnotify.Event)
		w := &watch{files: &fsnotify.Watcher{Events: reports}}
		told := 0
		go w.listen(ctx, nil, func() { told++ })
		began, want := time.Now(), time.Duration(0)
		send := func(n int, every time.Duration) {
			t.Helper()
			for range n {
				reports <- fsnotify.Event{Op: fsnotify.Chmod}
				reports <- fsnotify.Event{Op: fsnotify.Write}
				if took := time.Since(began); took != want {
					t.Errorf("a report was taken after %v, want %v", took, want)
				}
				want += every
			}
		}
		send(hasty, 0)
		want = calm
		send(20, calm)
		synctest.Wait()
		if told != hasty+20 {
			t.Errorf("%d reports were passed on", told)
		}
	})
}

// TestWatchOfNothing: what cannot be looked at wakes whoever listens.
func TestWatchOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	told := watched(t, s, time.Millisecond, func(*watch) {})
	path := filepath.Join(dir, registryFile)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-told
	}
}
