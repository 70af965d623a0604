package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// listener tells those who listen that something was committed: by hints, and by a look
// each poll, which finds commits without a hint. It has a connection of its own while
// somebody listens.
type listener struct {
	store *Store
	poll  time.Duration

	mu     sync.Mutex
	subs   map[chan struct{}]func() bool // with what ends the wait for its context
	stop   context.CancelFunc            // of the loop; nil while it does not run
	closed bool
	loops  sync.WaitGroup
}

// Changes implements [store.Watcher]. After Close the channel is closed from the start.
func (l *listener) Changes(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || ctx.Err() != nil {
		close(ch)
		return ch
	}
	if l.subs == nil {
		l.subs = make(map[chan struct{}]func() bool)
	}
	l.subs[ch] = context.AfterFunc(ctx, func() { l.leave(ch) })
	if l.stop == nil {
		l.start() //nolint:contextcheck // it serves others, too
	}
	return ch
}

// start starts the loop, which serves all who listen.
func (l *listener) start() {
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.loops.Go(func() { l.run(ctx) })
}

func (l *listener) leave(ch chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.subs[ch]; !there {
		return
	}
	delete(l.subs, ch)
	close(ch)
	if len(l.subs) == 0 && l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

// close ends every channel.
func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	for ch, release := range l.subs {
		release()
		delete(l.subs, ch)
		close(ch)
	}
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
	l.mu.Unlock()
	l.loops.Wait()
}

// tell wakes all who listen. One who has not looked yet looks once.
func (l *listener) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ch := range l.subs {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// run listens until ctx ends, again after a connection was lost.
func (l *listener) run(ctx context.Context) {
	var wait backoff
	for ctx.Err() == nil {
		if l.listen(ctx) {
			wait = backoff{}
		}
		if wait.next(ctx) != nil {
			return
		}
	}
}

// listen listens on one connection until it is lost, and reports whether there was one.
func (l *listener) listen(ctx context.Context) (connected bool) {
	config := l.store.pool.Config().ConnConfig
	config.RuntimeParams["application_name"] += " (listens)"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is given up
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{l.store.schema}.Sanitize()); err != nil {
		return false
	}
	// The first news tells of commits from before the connection.
	for at := ""; ; {
		l.tell()
		for {
			hinted, err := l.hinted(ctx, conn)
			if err != nil {
				return true
			}
			if hinted {
				break
			}
			now, err := position(ctx, conn, l.store.server.opts.Timeout)
			if err != nil {
				return true
			}
			if now == "" || now != at {
				at = now
				break
			}
		}
	}
}

// hinted waits for a hint, but not longer than until the next look.
func (l *listener) hinted(ctx context.Context, conn *pgx.Conn) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, l.poll)
	defer cancel()
	_, err := conn.WaitForNotification(bounded)
	if err == nil {
		return true, nil
	}
	if ctx.Err() == nil && errors.Is(bounded.Err(), context.DeadlineExceeded) && !conn.IsClosed() {
		return false, nil
	}
	return false, err
}

// position is how far the server has written its log, which every commit moves. It is ""
// where the server does not tell.
func position(ctx context.Context, conn *pgx.Conn, timeout time.Duration) (at string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = conn.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text").Scan(&at)
	if err != nil && !conn.IsClosed() {
		return "", nil // a standby, or a service that keeps it to itself
	}
	return at, err
}
