package sharedfile

import (
	"context"
	"database/sql"
	"errors"
	"testing"
)

// TestViewKeepsItsState: the same state means that nobody has committed, so that
// what was read need not be read again.
func TestViewKeepsItsState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, other := open(t, dir, unpolled), open(t, dir, unpolled)
	set(t, b, 1)
	for range 3 {
		want(t, b, 1)
	}
	if looked := b.looked.Load(); looked != 1 {
		t.Errorf("what nobody changed was read %d times", looked)
	}
	set(t, other, 2)
	want(t, b, 2)
}

// TestViewAfterAnError: it goes on with another connection and in another state, but
// for an answer that nothing was found.
func TestViewAfterAnError(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir(), unpolled)
	want(t, b, 0)
	look := func(query string) error {
		return b.Read(t.Context(), func(r Reader) error {
			return r.View.Look(t.Context(), func(ctx context.Context, now Seen) error {
				conn, err := now.Conn(ctx)
				if err != nil {
					return err
				}
				var n int
				return conn.QueryRowContext(ctx, query).Scan(&n)
			})
		})
	}
	kept, state := b.now.view.conn, b.now.view.state
	if err := look("SELECT n FROM number WHERE id = 2"); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a row that is not there: %v", err)
	}
	if b.now.view.conn != kept || b.now.view.state != state {
		t.Error("finding nothing ended the connection")
	}
	if err := look("SELECT nonsense"); err == nil {
		t.Fatal("nonsense has an answer")
	}
	if b.now.view.conn != nil || b.now.view.state == state {
		t.Error("an error left the connection and the state")
	}
	want(t, b, 0)
}

// TestViewOfACancelledLook: a caller that has given up gets no answer, and costs the next one
// nothing.
func TestViewOfACancelledLook(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir(), unpolled)
	for _, known := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.number(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("known %t: got %v", known, err)
		}
		want(t, b, 0)
		if b.now.view.conn == nil {
			t.Errorf("known %t: the connection is gone", known)
		}
	}
}

// TestLearnsOnlyOwnCommits: what a commit of this process has led to is known when nobody else has
// committed since the file was looked at.
func TestLearnsOnlyOwnCommits(t *testing.T) {
	t.Parallel()
	for _, foreign := range []int{0, 1, 2} {
		dir := t.TempDir()
		b, other := open(t, dir, unpolled), open(t, dir, unpolled)
		set(t, b, 1) // before the first commit nothing is counted
		want(t, b, 1)
		for i := range foreign {
			set(t, other, i+2)
		}
		learned := false
		changed, err := b.Update(t.Context(), Relaxed, func() error { return nil }, Update{
			Query: setNumber, Args: []any{7}, Learn: func(_, _ Seen) { learned = true },
		})
		if err != nil || !changed || learned != (foreign == 0) {
			t.Errorf("%d foreign commits: changed %t, learned %t, %v", foreign, changed, learned, err)
		}
		want(t, b, 7)
	}
}

// TestTrimLeavesAShortLog: a log that is no longer than it may be stays, and one that is longer is
// made empty.
func TestTrimLeavesAShortLog(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir(), unpolled)
	set(t, b, 1)
	size, err := b.logBytes()
	if err != nil || size == 0 {
		t.Fatalf("%d bytes, %v", size, err)
	}
	for _, tt := range []struct{ most, freed int64 }{{size, 0}, {size - 1, size}} {
		if freed, err := b.Trim(t.Context(), tt.most); err != nil || freed != tt.freed {
			t.Errorf("at most %d of %d bytes: freed %d, %v", tt.most, size, freed, err)
		}
	}
}
