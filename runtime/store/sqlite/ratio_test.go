package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest/crowdtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// reportRatio reports how many times the baseline something takes, by the medians
// of what was measured in one run, beside the most that it may be.
func reportRatio(b *testing.B, goal float64, measured, baseline []time.Duration) {
	b.Helper()
	ours, theirs := median(measured), median(baseline)
	b.ReportMetric(float64(ours)/float64(theirs), "x-baseline")
	b.ReportMetric(goal, "x-goal")
	b.ReportMetric(float64(ours.Nanoseconds()), "measured-ns")
	b.ReportMetric(float64(theirs.Nanoseconds()), "baseline-ns")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// timed is how long f takes.
func timed(b *testing.B, f func() error) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

// BenchmarkRatioReserve: a reservation beside 10 000 siblings against one beside
// 100.
func BenchmarkRatioReserve(b *testing.B) {
	b.Run("reserve with 10 000 siblings/with 100/"+string(sharedfile.Durable), func(b *testing.B) {
		many, few := withSiblings(b, 10_000), withSiblings(b, 100)
		var measured, baseline []time.Duration
		for n := 0; b.Loop(); {
			for range 300 {
				n++
				measured = append(measured, timed(b, func() error { return reserveOne(b.Context(), many, n) }))
				baseline = append(baseline, timed(b, func() error { return reserveOne(b.Context(), few, n) }))
			}
		}
		reportRatio(b, 1.3, measured, baseline)
	})
}

// numbers names the numbers from 1 to its parameter.
const numbers = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) "

// withSiblings is a store whose root has n children with budgets.
func withSiblings(b *testing.B, n int) *Store {
	b.Helper()
	s := open(b, b.TempDir(), Options{})
	if err := s.OpenRoot(b.Context(), "root", 1<<40, testTime); err != nil {
		b.Fatal(err)
	}
	err := beside(b, s.ledger, numbers+`INSERT INTO budgets (thread_id, parent_id, max_spend, created_at, updated_at)
		SELECT 'sibling-' || i, 'root', 1, 1, 1 FROM n`, n)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func reserveOne(ctx context.Context, s *Store, n int) error {
	return s.Reserve(ctx, thread.ID("child-"+strconv.Itoa(n)), "root", 1, testTime)
}

// BenchmarkRatioList: the newest 50 of 100 000 threads against those of 1 000.
func BenchmarkRatioList(b *testing.B) {
	many, few := withThreads(b, 100_000), withThreads(b, 1000)
	for _, tt := range []struct {
		name   string
		filter store.Filter
	}{
		{"all", store.Filter{}},
		{"states", store.Filter{States: []thread.State{thread.Created, thread.Running}}},
		{"directive", store.Filter{Directive: "t"}},
	} {
		b.Run("newest 50 of 100 000 threads, "+tt.name+"/of 1 000/nothing is written", func(b *testing.B) {
			var measured, baseline []time.Duration
			for b.Loop() {
				for range 200 {
					measured = append(measured, timed(b, func() error { return listPage(b.Context(), many, tt.filter) }))
					baseline = append(baseline, timed(b, func() error { return listPage(b.Context(), few, tt.filter) }))
				}
			}
			reportRatio(b, 1.3, measured, baseline)
		})
	}
}

func withThreads(b *testing.B, n int) *Store {
	b.Helper()
	s := open(b, b.TempDir(), Options{})
	err := beside(b, s.registry, numbers+`INSERT INTO threads (thread_id, kind, directive, created_at, updated_at, last_used)
		SELECT 't-' || i, 'directive', 't', 1000 + i, 1, 1 FROM n`, n)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func listPage(ctx context.Context, s *Store, f store.Filter) error {
	rows, _, err := s.List(ctx, f)
	if err == nil && len(rows) != store.DefaultPage {
		err = fmt.Errorf("%d rows", len(rows))
	}
	return err
}

// BenchmarkRatioLongestWait: the longest that one of 32 processes waits for its
// commit while all of them write for two seconds, in the queue against SQLite's
// own waiting. The transactions are the same. The two take turns, and medians of
// their longest waits are compared: in one round a single slow flush of the disk
// can decide.
func BenchmarkRatioLongestWait(b *testing.B) {
	b.Run("longest commit wait, 32 writing processes/plain busy timeout/"+string(sharedfile.Durable), func(b *testing.B) {
		var measured, baseline []time.Duration
		for b.Loop() {
			for range 5 {
				measured = append(measured, longestWait(b, "queue"))
				baseline = append(baseline, longestWait(b, "busy_timeout"))
			}
		}
		reportRatio(b, 0.1, measured, baseline)
	})
}

func longestWait(b *testing.B, wait string) (longest time.Duration) {
	b.Helper()
	dir := b.TempDir()
	id := running(b, open(b, dir, Options{}), "d", "")
	players := make([]*crowdtest.Player, 32)
	for i := range players {
		players[i] = start(b, "contend", dir, wait, string(id))
	}
	for _, p := range players {
		if got := p.Line(); got != "ready" {
			b.Fatalf("process said %q", got)
		}
	}
	for _, p := range players {
		p.GoAhead(b)
	}
	for _, p := range players {
		took, err := time.ParseDuration(p.Line())
		if err != nil {
			b.Fatal(err)
		}
		longest = max(longest, took)
		p.AwaitEnd(b, false)
	}
	return longest
}

// playContend commits for two seconds and says how long the longest commit took.
func playContend(ctx context.Context, dir, wait, id string, in io.Reader, out io.Writer) error {
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	turn := func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE threads SET turns = turns + 1 WHERE thread_id = ?", id)
		return err
	}
	commit := func() error { return s.registry.Write(ctx, sqlstore.Durable, turn) }
	if wait == "busy_timeout" {
		db := sharedfile.Pool(s.registry.path, 1)
		defer db.Close() //nolint:errcheck // nothing is left to be written
		if _, err := db.ExecContext(ctx, "PRAGMA busy_timeout = 60000"); err != nil {
			return err
		}
		commit = func() error { return transactAlone(ctx, db, turn) }
	}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	var longest time.Duration
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		begin := time.Now()
		if err := commit(); err != nil {
			return err
		}
		longest = max(longest, time.Since(begin))
	}
	if _, err := fmt.Fprintln(out, longest); err != nil {
		return err
	}
	return s.Close()
}

// transactAlone is a durable transaction that stands in no queue.
func transactAlone(ctx context.Context, db *sql.DB, f func(context.Context, *sql.Tx) error) error {
	if _, err := db.ExecContext(ctx, "PRAGMA synchronous = "+string(sharedfile.Durable)); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after the commit
	if err := f(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// BenchmarkRatioWake: from the return of the call that completes a thread, in
// another process, until a waiter has read the terminal row; against a message
// to that process over a unix socket and back. Both come out of idleness, which
// is most of what they take: messages that follow each other at once go back and
// forth in a sixth of the time.
func BenchmarkRatioWake(b *testing.B) {
	b.Run("wait wake-up after completion, row readable/a unix-socket ping/"+string(sharedfile.Durable), func(b *testing.B) {
		var wakes, pings []time.Duration
		for b.Loop() {
			w, p := measureWake(b, 25)
			wakes, pings = append(wakes, w...), append(pings, p...)
		}
		reportRatio(b, 10, wakes, pings)
	})
}

func measureWake(b *testing.B, rounds int) (wakes, pings []time.Duration) {
	dir := b.TempDir()
	s := open(b, dir, Options{})
	ids := make([]thread.ID, rounds)
	for i := range ids {
		ids[i] = running(b, s, "d", "")
	}
	other := start(b, "finish", dir)
	conn, err := (&net.Dialer{}).DialContext(b.Context(), "unix", other.Line())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing is left to be sent
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	changes := s.Changes(ctx)
	// In between, both come to rest.
	idle := time.NewTicker(100 * time.Millisecond)
	defer idle.Stop()
	for _, id := range ids {
		<-idle.C
		if _, err := fmt.Fprintln(other.Stdin, id); err != nil {
			b.Fatal(err)
		}
		seen := awaitEnd(b, s, changes, id)
		completed, err := strconv.ParseInt(other.Line(), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		wakes = append(wakes, max(0, seen.Sub(time.Unix(0, completed))))
		<-idle.C
		pings = append(pings, timed(b, func() error { return ping(conn) }))
	}
	other.GoAhead(b)
	other.AwaitEnd(b, false)
	return wakes, pings
}

// awaitEnd is when a waiter has read that a thread has ended.
func awaitEnd(b *testing.B, s *Store, changes <-chan struct{}, id thread.ID) time.Time {
	b.Helper()
	for {
		rec, err := s.Get(b.Context(), id)
		if err != nil {
			b.Fatal(err)
		}
		if rec.Status.Terminal() {
			return time.Now()
		}
		<-changes
	}
}

func ping(conn net.Conn) error {
	var message [1]byte
	if _, err := conn.Write(message[:]); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, message[:])
	return err
}

// playFinish completes the threads that it is told, and says when each call had
// returned. On a socket, whose path it says first, it sends back what it gets.
func playFinish(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "s")
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, path); err != nil {
		return err
	}
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	go func() { _, _ = io.Copy(conn, conn) }()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		c, err := store.Finished(thread.ID(lines.Text()), thread.Outcome{State: thread.Completed}, nil, testTime)
		if err != nil {
			return err
		}
		if _, err := storetest.As(s).Apply(ctx, c); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, time.Now().UnixNano()); err != nil {
			return err
		}
	}
	return s.Close()
}
