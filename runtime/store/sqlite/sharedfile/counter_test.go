package sharedfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"modernc.org/sqlite"
)

// Moments at which a writer is killed.
const (
	inTransaction = "in its transaction"
	beforeCommit  = "before its commit"
	beforeDone    = "before it says that its commit is done"
)

// playDie writes the number and kills itself at a moment of that.
func playDie(ctx context.Context, moment, dir, number string) error {
	b, err := openBook(ctx, dir, Options{})
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	hook := func(sqlite.HookRegisterer) {}
	switch moment {
	case inTransaction:
		hook = func(conn sqlite.HookRegisterer) {
			conn.RegisterPreUpdateHook(func(sqlite.SQLitePreUpdateData) { die() })
		}
	case beforeCommit:
		hook = func(conn sqlite.HookRegisterer) { conn.RegisterCommitHook(func() int32 { die(); return 0 }) }
	case beforeDone:
		// The number cannot be written to a file that is open for reading.
		if b.queue.commits.done, err = os.Open(b.queue.path); err != nil {
			return err
		}
	}
	if err := onWriter(ctx, b, hook); err != nil {
		return err
	}
	if err := b.write(ctx, n); err != nil {
		return err
	}
	die()
	return nil
}

// die kills this process.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// onWriter runs f on the connection that a book is written with.
func onWriter(ctx context.Context, b *book, f func(sqlite.HookRegisterer)) error {
	conn, err := b.now.writer.Conn(ctx)
	if err != nil {
		return err
	}
	return errors.Join(conn.Raw(func(c any) error {
		f(c.(*connection).sqliteConn.(sqlite.HookRegisterer))
		return nil
	}), conn.Close())
}

// runVictim has another process write a number and die at a moment of that.
func runVictim(t *testing.T, moment, dir string, number int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, dir, strconv.Itoa(number))
	cmd.Env = append(os.Environ(), roleVar+"="+moment)
	cmd.Stderr = os.Stderr
	if failed, ok := errors.AsType[*exec.ExitError](cmd.Run()); !ok || failed.Exited() {
		t.Fatalf("the process was to be killed: %v", failed)
	}
}

// TestKilledWriters: whatever a writer that is killed leaves the numbers at, what is
// remembered is what the file has, and the next commit is counted.
func TestKilledWriters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		moment string
		number int  // in the file afterwards
		quiet  bool // afterwards
	}{
		{inTransaction, 1, true},
		{beforeCommit, 1, false},
		{beforeDone, 2, false},
	} {
		t.Run(c.moment, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			b, other := open(t, dir, unpolled), open(t, dir, unpolled)
			set(t, other, 1)
			want(t, b, 1)

			runVictim(t, c.moment, dir, 2)
			if _, quiet := b.queue.commits.quiet(); quiet != c.quiet {
				t.Errorf("nothing seems to be on its way: %t", quiet)
			}
			want(t, b, c.number)

			for n := 3; n < 6; n++ {
				set(t, other, n)
				if _, quiet := b.queue.commits.quiet(); !quiet {
					t.Error("the next commit is not counted")
				}
				want(t, b, n)
			}
		})
	}
}

// TestCommitIsAnnounced: the numbers differ before the commit can be visible, and
// a transaction that is taken back leaves them alone.
func TestCommitIsAnnounced(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir(), unpolled)
	counter := b.queue.commits
	set(t, b, 1)
	before, quiet := counter.quiet()
	if !quiet {
		t.Fatal("a commit seems to be on its way")
	}
	commits := 0
	err := onWriter(t.Context(), b, func(conn sqlite.HookRegisterer) {
		conn.RegisterCommitHook(func() int32 {
			commits++
			if _, quiet := counter.quiet(); quiet {
				t.Error("the commit was not announced")
			}
			return 0
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	set(t, b, 2)
	if now, quiet := counter.quiet(); !quiet || now == before || commits != 1 {
		t.Errorf("%d commits took the number from %d to %d, quiet %t", commits, before, now, quiet)
	}
	before, _ = counter.quiet()
	refused := errors.New("refused")
	err = b.Write(t.Context(), Durable, func() error { return nil }, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, setNumber, 3)
		return errors.Join(err, refused)
	})
	if !errors.Is(err, refused) {
		t.Fatalf("a transaction that fails: %v", err)
	}
	if now, quiet := counter.quiet(); !quiet || now != before {
		t.Errorf("what was taken back took the number from %d to %d, quiet %t", before, now, quiet)
	}
	want(t, b, 2)
	if err := onWriter(t.Context(), b, func(conn sqlite.HookRegisterer) { conn.RegisterCommitHook(nil) }); err != nil {
		t.Fatal(err)
	}
}

// TestCounters: what is not known to be quiet is not taken for it.
func TestCounters(t *testing.T) {
	t.Parallel()
	number := func(n byte) string { return "12345678" + string([]byte{n, 0, 0, 0, 0, 0, 0, 0}) }
	for name, c := range map[string]struct {
		begun, done string
		quiet       bool
		next        uint64
	}{
		"new files":                       {"", "", false, 1},
		"an old file":                     {"", "\x00", false, 1},
		"cut":                             {number(7)[:15], number(7), false, 8},
		"nothing done":                    {number(1), "", false, 2},
		"one on its way, or killed":       {number(5), number(4), false, 6},
		"at rest":                         {number(4), number(4), true, 5},
		"begun in a file that was lost":   {"", number(4), false, 5},
		"done in a file that was lost":    {number(4), "", false, 5},
		"begun in a file that lags":       {number(3), number(4), false, 5},
		"nothing was ever said to be so":  {number(0), number(0), true, 1},
		"more than one was killed before": {number(9), number(4), false, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, err := OpenQueue(t.TempDir()+"/lock", Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close() //nolint:errcheck // nothing was locked
			err = errors.Join(os.WriteFile(q.commits.begun.Name(), []byte(c.begun), 0o600),
				os.WriteFile(q.commits.done.Name(), []byte(c.done), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			if _, quiet := q.commits.quiet(); quiet != c.quiet {
				t.Errorf("quiet: %t", quiet)
			}
			next := q.commits.begin()
			if _, quiet := q.commits.quiet(); quiet || next != c.next {
				t.Errorf("the next is number %d, quiet %t; want %d", next, quiet, c.next)
			}
			q.commits.end(next)
			if now, quiet := q.commits.quiet(); !quiet || now != next {
				t.Errorf("number %d is done, quiet %t; want %d", now, quiet, next)
			}
		})
	}
}

// TestChangesNobodyCounts: a commit that nobody counts is in what is read when the
// time of trust is over, and until then what is remembered may be told.
func TestChangesNobodyCounts(t *testing.T) {
	t.Parallel()
	for _, opts := range []Options{{Poll: time.Millisecond}, {Poll: time.Hour}, {Poll: time.Millisecond, One: true}, {Poll: time.Hour, One: true}} {
		poll := opts.Poll
		t.Run(fmt.Sprint(poll, opts.One), func(t *testing.T) {
			t.Parallel()
			b := open(t, t.TempDir(), opts)
			set(t, b, 1)
			want(t, b, 1)
			uncounted(t, b, 2)
			number := 1
			for number == 1 && poll < time.Hour {
				n, err := b.number(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				number = n
			}
			want(t, b, number)
			if err := b.Write(t.Context(), Relaxed, func() error { return nil }, func(context.Context, *sql.Tx) error { return nil }); err != nil {
				t.Fatal(err)
			}
			want(t, b, 2)
		})
	}
}

// TestBesideALostLock: a process that finds that others count in another file
// asks SQLite each time.
func TestBesideALostLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, dir, Options{Poll: time.Nanosecond})
	set(t, b, 9)
	for _, lost := range []string{b.queue.commits.begun.Name(), b.queue.commits.done.Name()} {
		if err := os.Remove(lost); err != nil {
			t.Fatal(err)
		}
		want(t, b, 9)
	}
	b.now.view.poll = time.Hour
	other := open(t, dir, unpolled)
	for n := 1; n < 4; n++ {
		set(t, other, n)
		want(t, b, n)
	}
}

// TestReopenedCounter: the number goes on where the last process left it.
func TestReopenedCounter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var last uint64
	for range 3 {
		b, err := openBook(t.Context(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		written := b.write(t.Context(), 1)
		now, quiet := b.queue.commits.quiet()
		if err := errors.Join(written, b.Close()); err != nil || !quiet || now <= last {
			t.Errorf("%d after %d, quiet %t, %v", now, last, quiet, err)
		}
		last = now
	}
}
