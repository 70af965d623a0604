package sqlite

import (
	"context"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Moments at which a writer is killed.
const (
	inTransaction = "in its transaction"
	beforeCommit  = "before its commit"
	beforeDone    = "before it says that its commit is done"
)

// playDie writes the turns of a thread and kills itself at a moment of that.
func playDie(ctx context.Context, moment, dir, id, turns string) error {
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(turns)
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
		// What cannot be written is not said.
		if s.registry.queue.tally.done, err = os.Open(s.registry.queue.path); err != nil {
			return err
		}
	}
	if err := onWriter(ctx, s, hook); err != nil {
		return err
	}
	if err := s.RecordCost(ctx, thread.ID(id), thread.Cost{Turns: n}, 0); err != nil {
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

// onWriter runs f on the connection that a store writes its registry with.
func onWriter(ctx context.Context, s *Store, f func(sqlite.HookRegisterer)) error {
	conn, err := s.registry.writer.Conn(ctx)
	if err != nil {
		return err
	}
	return errors.Join(conn.Raw(func(c any) error {
		f(c.(sqlite.HookRegisterer))
		return nil
	}), conn.Close())
}

// TestKilledWriters: whatever a writer that is killed leaves the numbers at, rows
// that are remembered are those of the file, and the next commit is counted.
func TestKilledWriters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		moment string
		turns  int  // in the row afterwards
		quiet  bool // afterwards
	}{
		{inTransaction, 1, true},
		{beforeCommit, 1, false},
		{beforeDone, 2, false},
	} {
		t.Run(c.moment, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, other := open(t, dir, unpolled), open(t, dir, unpolled)
			id := running(t, s, "d", "")
			recordTurns(t, other, id, 1)
			wantTurns(t, s, id, 1)

			victim := start(t, "die", c.moment, dir, string(id), "2")
			victim.awaitEnd(t, true)
			if _, quiet := s.registry.queue.tally.quiet(); quiet != c.quiet {
				t.Errorf("nothing seems to be on its way: %t", quiet)
			}
			wantTurns(t, s, id, c.turns)

			for turns := 3; turns < 6; turns++ {
				recordTurns(t, other, id, turns)
				if _, quiet := s.registry.queue.tally.quiet(); !quiet {
					t.Error("the next commit is not counted")
				}
				wantTurns(t, s, id, turns)
			}
		})
	}
}

func recordTurns(t *testing.T, s *Store, id thread.ID, turns int) {
	t.Helper()
	if err := s.RecordCost(t.Context(), id, thread.Cost{Turns: turns}, 0); err != nil {
		t.Fatal(err)
	}
}

// wantTurns reads a row twice, the second time from memory.
func wantTurns(t *testing.T, s *Store, id thread.ID, turns int) {
	t.Helper()
	for range 2 {
		if rec, err := s.Get(t.Context(), id); err != nil || rec.Cost.Turns != turns {
			t.Errorf("the row has %d turns, %v; want %d", rec.Cost.Turns, err, turns)
		}
	}
}

// TestCommitIsAnnounced: the numbers differ before the commit can be visible, and
// a transaction that is taken back leaves them alone.
func TestCommitIsAnnounced(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), unpolled)
	id := running(t, s, "d", "")
	tally := s.registry.queue.tally
	before, quiet := tally.quiet()
	if !quiet {
		t.Fatal("a commit seems to be on its way")
	}
	commits := 0
	err := onWriter(t.Context(), s, func(conn sqlite.HookRegisterer) {
		conn.RegisterCommitHook(func() int32 {
			commits++
			if _, quiet := tally.quiet(); quiet {
				t.Error("the commit was not announced")
			}
			return 0
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	recordTurns(t, s, id, 1)
	if now, quiet := tally.quiet(); !quiet || now == before || commits != 1 {
		t.Errorf("%d commits took the number from %d to %d, quiet %t", commits, before, now, quiet)
	}
	before, _ = tally.quiet()
	if err := s.RecordCost(t.Context(), "none", thread.Cost{}, 0); !errors.Is(err, thread.ErrNotFound) {
		t.Fatalf("recorded the cost of no thread: %v", err)
	}
	if now, quiet := tally.quiet(); !quiet || now != before {
		t.Errorf("what was taken back took the number from %d to %d, quiet %t", before, now, quiet)
	}
	if err := onWriter(t.Context(), s, func(conn sqlite.HookRegisterer) { conn.RegisterCommitHook(nil) }); err != nil {
		t.Fatal(err)
	}
}

// TestTallies: what is not known to be quiet is not taken for it.
func TestTallies(t *testing.T) {
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
			q, err := openQueue(t.TempDir()+"/lock", Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer q.close() //nolint:errcheck // nothing was locked
			writeFile(t, q.tally.begun.Name(), c.begun)
			writeFile(t, q.tally.done.Name(), c.done)
			if _, quiet := q.tally.quiet(); quiet != c.quiet {
				t.Errorf("quiet: %t", quiet)
			}
			next := q.tally.begin()
			if _, quiet := q.tally.quiet(); quiet || next != c.next {
				t.Errorf("the next is number %d, quiet %t; want %d", next, quiet, c.next)
			}
			q.tally.end(next)
			if now, quiet := q.tally.quiet(); !quiet || now != next {
				t.Errorf("number %d is done, quiet %t; want %d", now, quiet, next)
			}
		})
	}
}

// TestRowsThatStrangersChange: a commit that nobody counts is in what is read when
// the time of trust is over, and until then what is remembered may be told.
func TestRowsThatStrangersChange(t *testing.T) {
	t.Parallel()
	for _, poll := range []time.Duration{time.Millisecond, time.Hour} {
		t.Run(poll.String(), func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir(), Options{Poll: poll})
			id := running(t, s, "d", "")
			recordTurns(t, s, id, 1)
			wantTurns(t, s, id, 1)
			if _, err := s.registry.writer.ExecContext(t.Context(), "UPDATE threads SET turns = 2"); err != nil {
				t.Fatal(err)
			}
			turns := 1
			for turns == 1 && poll < time.Hour {
				rec, err := s.Get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				turns = rec.Cost.Turns
			}
			wantTurns(t, s, id, turns)
			recordTurns(t, s, running(t, s, "other", ""), 1)
			wantTurns(t, s, id, 2)
		})
	}
}

// TestRowsBesideALostLock: who finds that others count in another file asks SQLite
// each time.
func TestRowsBesideALostLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{Poll: time.Nanosecond})
	id := running(t, s, "d", "")
	for _, lost := range []string{s.registry.queue.tally.begun.Name(), s.registry.queue.tally.done.Name()} {
		if err := os.Remove(lost); err != nil {
			t.Fatal(err)
		}
		wantTurns(t, s, id, 0)
	}
	s.registry.memo.poll = time.Hour
	other := open(t, dir, unpolled)
	for turns := 1; turns < 4; turns++ {
		recordTurns(t, other, id, turns)
		wantTurns(t, s, id, turns)
	}
}

// TestReopenedTally: the number goes on where the last process left it.
func TestReopenedTally(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var last uint64
	for range 3 {
		s, err := Open(t.Context(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, registered := s.Get(t.Context(), mustRegister(t, s, newThread("d", "")))
		now, quiet := s.registry.queue.tally.quiet()
		if err := errors.Join(registered, s.Close()); err != nil || !quiet || now <= last {
			t.Errorf("%d after %d, quiet %t, %v", now, last, quiet, err)
		}
		last = now
	}
}
