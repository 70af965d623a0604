package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
)

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// numbers names the numbers from 1 to its parameter.
const numbers = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) "

// opened is a store with the folder that it is in.
type opened struct {
	*sqlite.Store
	dir string
}

func open(t *testing.T) opened {
	t.Helper()
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Poll: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return opened{s, dir}
}

// beside executes a statement in the registry over a connection of its own, which
// stands in no queue and counts nothing.
func beside(t *testing.T, s opened, statement string, args ...any) (err error) {
	t.Helper()
	db := sharedfile.Pool(filepath.Join(s.dir, "registry.db"), 1)
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(t.Context(), statement, args...)
	return err
}

// queryPlan is how SQLite would run a statement, step by step.
func queryPlan(t *testing.T, d sqlstore.Database, query string, args ...any) (plan []string) {
	t.Helper()
	err := d.Read(t.Context(), func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query, args...)
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // Err below reports what the iteration met
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				return err
			}
			plan = append(plan, detail)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestCostsReadTheirRange holds that costs of a range look at no thread outside it.
func TestCostsReadTheirRange(t *testing.T) {
	t.Parallel()
	s := open(t)
	plan := queryPlan(t, s.Registry(), sqlstore.CostsSQL(sqlstore.SQLite), 1, 2, 3)
	if text := strings.Join(plan, "\n"); !strings.Contains(text, "SEARCH threads USING INDEX threads_created (created_at>? AND created_at<?)") ||
		strings.Contains(text, "SCAN threads") {
		t.Errorf("the plan is\n%s", text)
	}
}

// TestNothingReadsAllThreads holds what a look asks to read indexes, and not every row.
func TestNothingReadsAllThreads(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, tt := range []struct {
		of    sqlstore.Database
		query string
	}{
		{s.Registry(), sqlstore.StatsSQL}, {s.Registry(), sqlstore.KnownSQL}, {s.Ledger(), sqlstore.ActiveSQL},
	} {
		steps := queryPlan(t, tt.of, tt.query, 1, 1)
		if len(steps) == 0 || steps[0] == "" {
			t.Errorf("%s\nhas the plan %q", tt.query, steps)
		}
		for _, step := range steps {
			if strings.HasPrefix(step, "SCAN threads") || step == "SCAN budgets" {
				t.Errorf("%s\n%s", tt.query, step)
			}
		}
	}
}

// TestQueueReadsItsIndexes: the cost of a look at the queue must not grow with the
// threads that have ended.
func TestQueueReadsItsIndexes(t *testing.T) {
	t.Parallel()
	s := open(t)
	numbered := regexp.MustCompile(`\?\d?`)
	for query, want := range map[string][]string{
		sqlstore.QueueLoadSQL:                                                   {"threads_queued", "threads_slots"},
		strings.Replace(sqlstore.NextChildSQL, "?", "7", 1):                     {"threads_queued_children"},
		strings.Replace(sqlstore.NextOtherSQL, "?", "7", 1):                     {"threads_queued "},
		numbered.ReplaceAllString(sqlstore.EnqueueSQL, "7"):                     {"threads_slots", "threads_queued;", "threads_queued_children"},
		numbered.ReplaceAllString(sqlstore.AdmitSQL, "7"):                       {"threads_slots"},
		"SELECT " + sqlstore.NextPosition:                                       {"threads_position"},
		"SELECT " + sqlstore.Columns + " FROM threads WHERE queue_position = 7": {"threads_position"},
	} {
		plan := strings.Join(queryPlan(t, s.Registry(), query), "; ")
		for _, index := range want {
			if !strings.Contains(plan, index) {
				t.Errorf("%s\ndoes not use %s: %s", query, index, plan)
			}
		}
		if strings.Contains(plan, "TEMP B-TREE") || strings.Count(plan, "INDEX") < strings.Count(plan, "threads ") {
			t.Errorf("%s\nsorts or scans: %s", query, plan)
		}
	}
}
