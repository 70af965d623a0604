package sharedfile

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"
)

// TestOneConnection: what was written is read, and what others have written, over the
// connection that both is done with.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, other := open(t, dir, Options{Poll: unpolled.Poll, One: true}), open(t, dir, unpolled)
	for n := range 3 {
		set(t, b, 2*n)
		want(t, b, 2*n)
		set(t, other, 2*n+1)
		want(t, b, 2*n+1)
	}
	back := errors.New("take it back")
	err := b.Write(t.Context(), Durable, func() error { return nil }, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, setNumber, 9)
		return errors.Join(err, back)
	})
	if !errors.Is(err, back) {
		t.Fatal(err)
	}
	want(t, b, 5)
	if made := b.now.writer.Stats().OpenConnections; made != 1 || b.now.reader != b.now.writer {
		t.Errorf("%d connections to write with", made)
	}
}

// TestOneConnectionWaits: while a write waits for somebody who does not stand in the
// queue, what is there can be read.
func TestOneConnectionWaits(t *testing.T) {
	t.Parallel()
	readsMeanwhile(t, func(b *book) error { return b.write(t.Context(), 2) })
}

// TestOneConnectionLooksBetween: what was read while a commit of this process was on its
// way is not taken for what is there when it is done. SQLite's number leaves that commit
// out, as it is of the connection that is read with.
func TestOneConnectionLooksBetween(t *testing.T) {
	t.Parallel()
	readsMeanwhile(t, func(b *book) error {
		_, err := b.Update(t.Context(), Durable, nothing, Update{Query: setNumber, Args: []any{2}, Learn: func(_, _ Seen) {}})
		return err
	})
}

// readsMeanwhile has write set the number from 1 to 2 while a stranger has the file locked,
// and reads it in the meantime and afterwards.
func readsMeanwhile(t *testing.T, write func(*book) error) {
	t.Helper()
	waits := make(chan struct{})
	b := open(t, t.TempDir(), Options{
		One: true, Poll: unpolled.Poll, Patience: Patience{Stopped: time.Nanosecond, Idle: time.Hour},
		Busy: func(Wait) (stopped bool, err error) {
			waits <- struct{}{}
			return false, nil
		},
	})
	set(t, b, 1)
	stranger := Pool(b.path, 1)
	defer stranger.Close() //nolint:errcheck // it has written nothing
	tx, err := stranger.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- write(b) }()
	<-waits
	want(t, b, 1)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-waits:
		case err := <-written:
			if err != nil {
				t.Fatal(err)
			}
			want(t, b, 2)
			return
		}
	}
}
