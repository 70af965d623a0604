package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// listener tells those who listen that something was committed: by hints, and by a look
// each poll, which finds commits without a hint. It has a connection of its own while
// somebody listens.
type listener struct {
	store *Store
	poll  time.Duration

	mu     sync.Mutex
	subs   map[chan struct{}]subscription
	stop   context.CancelFunc // of the loop; nil while it does not run
	closed bool
	loops  sync.WaitGroup
}

// subscription is of one who listens.
type subscription struct {
	release    func() bool // ends the wait for its context
	milestones bool        // minor commits do not concern it
}

// listenFor makes a channel that is told of commits, or of milestones alone.
func (l *listener) listenFor(ctx context.Context, milestones bool) <-chan struct{} {
	ch := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || ctx.Err() != nil {
		close(ch)
		return ch
	}
	if l.subs == nil {
		l.subs = make(map[chan struct{}]subscription)
	}
	l.subs[ch] = subscription{context.AfterFunc(ctx, func() { l.leave(ch) }), milestones}
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
	for ch, sub := range l.subs {
		sub.release()
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

// tell wakes all whom commits concern. One who has not looked yet looks once.
func (l *listener) tell(minor bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ch, sub := range l.subs {
		if sub.milestones && minor {
			continue
		}
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
	minor := false
	for at := ""; ; {
		l.tell(minor)
		for {
			hint, err := l.hint(ctx, conn)
			if err != nil {
				return true
			}
			if hint != nil {
				minor = hint.Payload == ofMinor
				break
			}
			now, err := position(ctx, conn, l.store.server.opts.Timeout)
			if err != nil {
				return true
			}
			if now == "" || now != at {
				at, minor = now, false
				break
			}
		}
	}
}

// hint waits for a hint, but not longer than until the next look: then it is nil.
func (l *listener) hint(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	bounded, cancel := context.WithTimeout(ctx, l.poll)
	defer cancel()
	hint, err := conn.WaitForNotification(bounded)
	if err == nil {
		return hint, nil
	}
	if ctx.Err() == nil && errors.Is(bounded.Err(), context.DeadlineExceeded) && !conn.IsClosed() {
		return nil, nil
	}
	return nil, err
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
