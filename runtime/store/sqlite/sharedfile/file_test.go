package sharedfile

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestFollow: nobody writes or reads a file any more that was moved away, when its owner
// lets that happen.
func TestFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, other := open(t, dir, unpolled), open(t, dir, unpolled)
	set(t, b, 1)
	want(t, other, 1)
	database, _ := paths(dir)
	if err := Rename(database, database+".aside"); err != nil {
		t.Fatal(err)
	}
	if !b.Replaced() {
		t.Error("a file that is gone was not missed")
	}
	set(t, b, 5)
	want(t, b, 5)
	want(t, other, 5)
	if b.Replaced() || b.opened.Load() != 2 || other.opened.Load() != 2 {
		t.Errorf("replaced %t, opened %d and %d times", b.Replaced(), b.opened.Load(), other.opened.Load())
	}
	b.follow = errors.New("a stranger's")
	if err := os.Remove(database); err != nil {
		t.Fatal(err)
	}
	if err := b.write(t.Context(), 6); !errors.Is(err, b.follow) || !strings.HasPrefix(err.Error(), "cannot follow: ") {
		t.Errorf("written: %v", err)
	}
	if _, err := b.number(t.Context()); !errors.Is(err, b.follow) {
		t.Errorf("read: %v", err)
	}
	if _, err := os.Stat(database); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that may not be followed was made: %v", err)
	}
}

// TestErrorsAreExplained: an error of a transaction, of a read and of opening is put
// in the words of the owner.
func TestErrorsAreExplained(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, dir, unpolled)
	if _, err := b.now.writer.ExecContext(t.Context(), "DROP TABLE number"); err != nil {
		t.Fatal(err)
	}
	_, reading := b.number(t.Context())
	database, _ := paths(t.TempDir())
	if err := os.Mkdir(database, 0o700); err != nil {
		t.Fatal(err)
	}
	_, opening := Open(t.Context(), database, database+".lock", b, Options{})
	for what, err := range map[string]error{"write": b.write(t.Context(), 1), "read": reading, "open": opening} {
		if err == nil || !strings.HasPrefix(err.Error(), "the book: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestOpenNeedsNoTurn: a file that is ready is opened and read while another process
// has the turn. A check that objects keeps a transaction from being begun.
func TestOpenNeedsNoTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, dir, unpolled)
	release, err := first.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late := open(t, dir, unpolled)
	want(t, late, 0)
	release()
	objection := errors.New("not now")
	if err := late.Write(t.Context(), Durable, func() error { return objection }, nil); !errors.Is(err, objection) {
		t.Errorf("written: %v", err)
	}
}

// TestOpenedAtOnce: of many that open a file that is not there, one makes it.
func TestOpenedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() {
			b, err := openBook(t.Context(), dir, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(b.write(t.Context(), 3), b.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	users.Wait()
	want(t, open(t, dir, Options{}), 3)
}

// TestBusy: a wait is over as soon as who is waited for is known to be suspended, or
// when its time is over, and who that is stands where the turn is.
func TestBusy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		patience Patience
		stopped  bool
	}{
		"suspended": {Patience{Idle: time.Hour, Stopped: time.Millisecond}, true},
		"runs":      {Patience{Idle: 2 * time.Millisecond, Stopped: time.Millisecond}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir() + "/lock"
			holder, err := OpenQueue(path, Options{Record: []byte("it is me")})
			if err != nil {
				t.Fatal(err)
			}
			busy := errors.New("busy")
			var asked Wait
			waiter, err := OpenQueue(path, Options{Patience: tt.patience, Busy: func(w Wait) (bool, error) {
				asked = w
				return tt.stopped, busy
			}})
			if err != nil {
				t.Fatal(err)
			}
			release := acquire(t, holder)
			var since [2]time.Time
			for i := range since {
				if _, err := waiter.Acquire(t.Context()); !errors.Is(err, busy) {
					t.Errorf("the wait ended with %v", err)
				}
				since[i] = waiter.stuck.since
			}
			if since[0] != since[1] {
				t.Error("the second caller waited again for the same process")
			}
			if asked.Path != path || len(asked.Files) != 2 || string(bytes.TrimSpace(asked.Record)) != "it is me" || asked.Waited <= 0 {
				t.Errorf("asked about %+v", asked)
			}
			release()
			waiter.alone()
			acquire(t, waiter)()
			if err := errors.Join(holder.Close(), waiter.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// alone waits until the helper that nobody wants has had the turn and let go of it: as
// long as it has, the turn is not free.
func (q *Queue) alone() {
	for waits := true; waits; runtime.Gosched() {
		q.mu.Lock()
		waits = q.helper != nil
		q.mu.Unlock()
	}
}

// TestBusyUnknown: without anybody to ask, the error names the file, and a record
// that is too long is not left.
func TestBusyUnknown(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/lock"
	holder, err := OpenQueue(path, Options{Record: make([]byte, RecordSize+1)})
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close() //nolint:errcheck // the test is over
	waiter, err := OpenQueue(path, Options{Patience: Patience{Idle: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer waiter.Close() //nolint:errcheck // the test is over
	release := acquire(t, holder)
	defer release()
	if _, err := waiter.Acquire(context.Background()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the wait ended with %v", err)
	}
	if record := readRecord(waiter.commits.begun); record != nil {
		t.Errorf("left %q", record)
	}
}

// TestSidecarsOfAFileThatIsGone: what lay beside it is not taken for that of a new one.
func TestSidecarsOfAFileThatIsGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	database, _ := paths(dir)
	for _, ending := range sidecars {
		if err := os.WriteFile(database+ending, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, dir, Options{})
	set(t, b, 1)
	want(t, b, 1)
}
