package sharedfile

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// follow looks for number after number, only when it is told to, and sends each
// that it saw.
func follow(ctx context.Context, b *book, last int, seen chan<- error) {
	wake := b.Changes(ctx)
	for n := 0; n < last; {
		now, err := b.number(ctx)
		for ; n < now; n++ {
			seen <- err
		}
		if err != nil {
			seen <- err
			return
		}
		if n < last {
			<-wake
		}
	}
}

// lead writes number after number and waits for each to be seen.
func lead(t *testing.T, b *book, last int, seen <-chan error) {
	t.Helper()
	for n := 1; n <= last; n++ {
		set(t, b, n)
		if err := <-seen; err != nil {
			t.Fatalf("number %d: %v", n, err)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	const last = hasty + 5 // the last come in peace
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
			seen := make(chan error)
			go follow(ctx, reader, last, seen)
			lead(t, writer, last, seen)
		})
	}
}

// TestWritersPoke: the lock of the queue alone tells of a commit, which is visible
// by then.
func TestWritersPoke(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, reader := open(t, dir, Options{}), open(t, dir, Options{})
	_, lock := paths(dir)
	files, err := watchFile(lock)
	if err != nil {
		if runtime.GOOS == "linux" {
			t.Fatal(err)
		}
		t.Skipf("nothing can be watched here: %v", err)
	}
	defer files.Close() //nolint:errcheck // it only read
	for n := 1; n <= 20; n++ {
		done := make(chan error, 1)
		go func() { done <- b.write(t.Context(), n) }()
		<-files.Events
		if got, err := reader.number(t.Context()); err != nil || got != n {
			t.Errorf("number %d after the report of %d, %v", got, n, err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// watched runs a watch that is polled only as often as is said, and sends what it
// tells. The watch ends with the test.
func watched(t *testing.T, b *book, poll time.Duration, change func(*watch)) (told <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := newWatch(ctx, b.File, poll)
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
	b, other := open(t, dir, unpolled), open(t, dir, unpolled)
	told := watched(t, b, time.Hour, deaf(t))
	for n := range 3 {
		set(t, other, n)
		<-told
	}
}

// TestChangesOfStrangers: what is committed by somebody who does not count is
// told, with reports and without.
func TestChangesOfStrangers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*watch){"watched": func(*watch) {}, "polled": deaf(t)} {
		inBoth(t, name, func(t *testing.T, one bool) {
			b := open(t, t.TempDir(), Options{Poll: time.Millisecond, One: one})
			told := watched(t, b, time.Millisecond, change)
			for n := 1; n <= 3; n++ {
				uncounted(t, b, n)
				awaitNumber(t, b, told, n)
			}
		})
	}
}

// TestChangesBesideALostLock: a process that comes after the file of the lock was
// removed counts in another one.
func TestChangesBesideALostLock(t *testing.T) {
	t.Parallel()
	inBoth(t, "lost", func(t *testing.T, one bool) {
		dir := t.TempDir()
		b := open(t, dir, Options{Poll: time.Millisecond, One: one})
		told := watched(t, b, time.Millisecond, func(*watch) {})
		_, lock := paths(dir)
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
		other := open(t, dir, Options{Poll: time.Millisecond})
		for n := 1; n <= 3; n++ {
			for i, from := range []*book{other, b} {
				set(t, from, 2*n+i)
				awaitNumber(t, b, told, 2*n+i)
			}
		}
	})
}

// awaitNumber reads whenever it is told to, until the number is as large as that.
func awaitNumber(t *testing.T, b *book, told <-chan struct{}, n int) {
	t.Helper()
	for seen := 0; seen < n; {
		<-told
		var err error
		if seen, err = b.number(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStormOfReports: some are passed on at once, then one at a time. A
// report of anything but a commit is not passed on.
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
	b := open(t, dir, Options{})
	told := watched(t, b, time.Millisecond, func(*watch) {})
	path, _ := paths(dir)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-told
	}
}
