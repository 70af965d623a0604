package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// hinter tells others that something was committed, after it was: NOTIFY in a
// transaction would make all commits of the database wait for each other. Commits that come
// while one hint is on its way share the next.
type hinter struct {
	store *Store

	mu        sync.Mutex
	due       bool
	milestone bool // a commit since the last hint is a milestone
	start     bool // a thread has become startable, see deliver
	working   bool
	closed    bool
	idle      sync.Cond // nobody works
}

func newHinter(s *Store) *hinter {
	h := &hinter{store: s}
	h.idle.L = &h.mu
	return h
}

// hint asks for a hint of a commit, which may be minor: see [sqlstore.IsMinor]. It does not
// wait.
func (h *hinter) hint(minor bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.due = true
	h.milestone = h.milestone || !minor
	h.begin()
}

// begin begins to send, unless that is done already.
func (h *hinter) begin() {
	if !h.working && !h.closed {
		h.working = true
		go h.work()
	}
}

// work sends hints as long as they are due.
func (h *hinter) work() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.due || h.start {
		due, said, start := h.due, payload(!h.milestone), h.start
		h.due, h.milestone, h.start = false, false, false
		h.mu.Unlock()
		if due {
			h.send(h.store.schema, said)
		}
		if start {
			h.send(insertTopic, `{"queue": "`+queueOf(h.store.schema)+`"}`)
		}
		h.mu.Lock()
	}
	h.working = false
	h.idle.Broadcast()
}

// hintTimeout is how long a hint may take. Those who listen look by themselves, too.
const hintTimeout = 2 * time.Second

func (h *hinter) send(channel, said string) {
	ctx, cancel := context.WithTimeout(context.Background(), hintTimeout)
	defer cancel()
	// The look each second finds what a lost hint would have told.
	_, _ = h.store.pool.Exec(ctx, notify, channel, said)
}

// notify does not wait for the disk: a transaction with a hint has, until it is over, a lock
// of which there is one in the database.
const notify = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)"

// ofMinor is what a hint says of commits that are all minor. Any other text, as the empty
// one of earlier versions, is of commits that may be anything.
const ofMinor = "minor"

func payload(minor bool) string {
	if minor {
		return ofMinor
	}
	return ""
}

// hintBehind follows a COMMIT, as a transaction of its own.
func hintBehind(schema string) func(minor bool) string {
	return func(minor bool) string {
		return "; BEGIN; SET LOCAL synchronous_commit = off; NOTIFY " + pgx.Identifier{schema}.Sanitize() + ", '" + payload(minor) + "'; COMMIT"
	}
}

// insertTopic is where clients of River in schema rye hear of new jobs. A trigger inserts
// those of startable threads (migration 0006), and tells nobody.
const insertTopic = fleetSchema + ".river_insert"

// queueOf is the queue of River that has the hints of a project: by the hash in the name of
// its schema.
func queueOf(schema string) string { return "p_" + schema[max(0, len(schema)-12):] }

// deliver has River's clients look for the hint that a startable thread has left.
func (h *hinter) deliver() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.start = true
	h.begin()
}

// Enqueue implements [store.Queue].
func (s *Store) Enqueue(ctx context.Context, id thread.ID, slots int, at time.Time) (thread.Record, error) {
	rec, err := s.Store.Enqueue(ctx, id, slots, at)
	if err == nil && rec.Queued() {
		s.hinter.deliver() //nolint:contextcheck // a hint outlives the call
	}
	return rec, err
}

// close waits until the last hint is sent. There are no further ones.
func (h *hinter) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for h.working {
		h.idle.Wait()
	}
}
