package postgres_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// manyThreads is how many a store of these tests has.
const manyThreads = 5 * store.MaxScanned / 2

// withThreads is a project in which many threads have ended, and a few work. One
// connection does everything, so that what it has read can be asked for.
func withThreads(t *testing.T) *postgres.Store {
	t.Helper()
	server, err := postgres.Connect(t.Context(), postgres.Options{URL: pgtest.Server(t), Poll: time.Hour, Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	s := open(t, server, "p")
	if _, err := s.Pool().Exec(t.Context(), "ALTER TABLE threads DISABLE TRIGGER USER"); err != nil { // their counts are not looked at
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO threads (thread_id, kind, directive, name, status, result, parent_id, metadata, spend, token_count, created_at, updated_at, last_used, completed_at)
			SELECT 't-' || i, 'directive', 'd' || i % 50, CASE WHEN i % 1000 = 0 THEN 'Needle ' || i % 7 ELSE 'hay ' || i % 7 END, 'completed', '{}',
				CASE WHEN i > 20 AND i % 10 > 0 THEN 't-' || i % 20 + 1 END, CASE WHEN i % 100 = 0 THEN '{"team":"a"}' ELSE '{}' END,
				i % 11, i % 13, 1000000 + i / 3, 1000000 + i, 1000000 + i / 5, 1000000 + i
			FROM generate_series(1, $1::int) i`,
		`INSERT INTO budgets (thread_id, max_spend, status, created_at, updated_at) SELECT 't-' || i, 10, 'settled', 1, 1 FROM generate_series(1, $1::int) i`,
	} {
		if _, err := s.Pool().Exec(t.Context(), statement, manyThreads); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Pool().Exec(t.Context(), "ALTER TABLE threads ENABLE TRIGGER USER; ANALYZE"); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestNothingReadsAllThreads holds what is done all the time to indexes: it must not
// become slower with each thread that has ended. Reads that follow several threads to their
// relatives at once (Trees, Latest in a tree) are not here: PostgreSQL expects thousands of
// them, and reads a table of this size sooner than as many places of an index.
func TestNothingReadsAllThreads(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s, ctx := withThreads(t), t.Context()
	by := storetest.As(s)
	n := store.NewThread{ID: "new", Kind: thread.KindDirective, Directive: "d1", Now: at}
	steps := map[string]func() error{
		"get":         func() error { _, err := s.Get(ctx, "t-7"); return err },
		"descendants": func() error { _, err := s.Descendants(ctx, "t-30"); return err },
		"cancel":      func() error { _, err := s.RequestCancel(ctx, "t-30", "", at); return err },
		"candidate": func() error {
			_, err := s.Candidate(ctx, store.NewThread{Kind: n.Kind, Directive: "d1", Now: at})
			return err
		},
		"register": func() error { _, _, err := s.Register(ctx, n); return err },
		"enqueue":  func() error { _, err := s.Enqueue(ctx, "new", 1, at); return err },
		"next":     func() error { _, _, err := s.Next(ctx, 5, store.QueuePlace{}); return err },
		"load":     func() error { _, err := s.QueueLoad(ctx); return err },
		"claim": func() error {
			_, err := by.Apply(ctx, store.Claimed("new", thread.Process{PID: 1, Host: "h"}, at))
			return err
		},
		"cost":      func() error { return by.RecordCost(ctx, "new", thread.Cost{Turns: 1}, 1) },
		"occupants": func() error { _, err := s.Occupants(ctx); return err },
		"census":    func() error { _, err := s.Census(ctx); return err },
		"untold":    func() error { _, err := s.Untold(ctx, "key"); return err },
		"known":     func() error { _, err := s.Known(ctx, []thread.ID{"t-1", "t-2"}); return err },
		"stats":     func() error { _, err := s.Stats(ctx, store.StatsSince{Used: at, Created: at}); return err },
		"latest":    func() error { _, err := s.Latest(ctx, "d1", ""); return err },
		"glance":    func() error { _, err := s.Glance(ctx, store.EndedMost{Any: 20, Roots: 20}); return err },
		"ended":     func() error { _, err := s.Ended(ctx, []thread.ID{"t-1", "t-2"}); return err },
		"newest":    func() error { _, _, err := s.List(ctx, store.Filter{}); return err },
		"states": func() error {
			_, _, err := s.List(ctx, store.Filter{States: []thread.State{thread.Running, thread.Completed}})
			return err
		},
		"by name":  func() error { return list(ctx, s, store.Filter{Sort: store.Sort{By: store.ByName}}) },
		"by spend": func() error { return list(ctx, s, store.Filter{Directive: "d3", Sort: store.Sort{By: store.BySpend}}) },
		"metadata": func() error { return list(ctx, s, store.Filter{Metadata: json.RawMessage(`{"team":"a"}`)}) },
		"expired": func() error {
			_, err := s.Expired(ctx, store.Expiry{UsedUntil: time.UnixMilli(1000100), Limit: 10})
			return err
		},
		"active":   func() error { _, err := s.Active(ctx); return err },
		"money":    func() error { return s.OpenRoot(ctx, "new", 100, at) },
		"reserve":  func() error { return s.Reserve(ctx, "child", "new", 10, at) },
		"settle":   func() error { return by.Settle(ctx, "child", at) },
		"tree":     func() error { _, _, err := s.Tree(ctx, "new"); return err },
		"exposure": func() error { _, err := s.Exposure(ctx, "new"); return err },
	}
	for _, name := range []string{
		"get", "descendants", "cancel", "candidate", "register", "enqueue", "next", "load", "claim", "cost", "occupants", "census", "untold", "known",
		"stats", "latest", "glance", "ended", "newest", "states", "by name", "by spend", "metadata", "expired", "active", "money", "reserve", "settle", "tree", "exposure",
	} {
		before := scanned(t, s)
		if err := steps[name](); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if rows := scanned(t, s) - before; rows >= manyThreads {
			t.Errorf("%s reads %d rows without an index", name, rows)
		}
	}
}

// list reads two pages.
func list(ctx context.Context, s *postgres.Store, f store.Filter) error {
	_, next, err := s.List(ctx, f)
	if err == nil && next != "" {
		f.Cursor = next
		_, _, err = s.List(ctx, f)
	}
	return err
}

// scanned is how many rows of threads and budgets were read so far that no index has found.
func scanned(t *testing.T, s *postgres.Store) (rows int64) {
	t.Helper()
	if _, err := s.Pool().Exec(t.Context(), "SELECT pg_stat_force_next_flush()"); err != nil {
		t.Fatal(err)
	}
	err := s.Pool().QueryRow(t.Context(), `SELECT sum(seq_tup_read) FROM pg_stat_user_tables
		WHERE schemaname = $1 AND relname IN ('threads', 'budgets')`, s.Schema()).Scan(&rows)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestListByText compares a bounded number of rows with a text for each page, in every
// order, and finds all that there are over the pages, once each.
func TestListByText(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := withThreads(t)
	for _, by := range store.SortKeys() {
		for text, want := range map[string]int{"needle": manyThreads / 1000, "straw": 0} {
			f := store.Filter{Name: text, States: []thread.State{thread.Completed, thread.Error}, Sort: store.Sort{By: by, Ascending: by == store.BySpend}}
			found, pages := map[thread.ID]bool{}, 0
			for pages == 0 || f.Cursor != "" {
				rows, next, err := s.List(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				for _, rec := range rows {
					if found[rec.ThreadID] {
						t.Errorf("%+v finds %s twice", f, rec.ThreadID)
					}
					found[rec.ThreadID] = true
				}
				f.Cursor, pages = next, pages+1
			}
			if len(found) != want || pages != 3 {
				t.Errorf("%+v finds %d threads in %d pages, want %d in 3", f, len(found), pages, want)
			}
		}
	}
}
