package sqlite

import (
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// former is a database of an older schema, which a process of that version has open.
type former struct {
	testing.TB
	folder  string // of its migrations
	version int64
	dir     string // of the databases
	db      *sql.DB
}

// formerDatabases runs a test with a database of each schema before today's, those
// that are to come too.
func formerDatabases(t *testing.T, folder string, test func(f *former)) {
	t.Helper()
	f := &former{TB: t, folder: folder, dir: t.TempDir(), version: 1}
	latest := f.open()
	if latest < 2 {
		t.Fatalf("%d migrations of %s", latest, folder)
	}
	for version := int64(1); version < latest; version++ {
		t.Run(fmt.Sprintf("%s %d", folder, version), func(t *testing.T) {
			t.Parallel()
			f := &former{TB: t, folder: folder, dir: t.TempDir(), version: version}
			f.open()
			test(f)
		})
	}
}

// open makes the database and returns the newest version there is.
func (f *former) open() (latest int64) {
	f.Helper()
	path := filepath.Join(f.dir, map[string]string{"registry": registryFile, "ledger": ledgerFile}[f.folder])
	f.noError(os.WriteFile(path, nil, 0o600))
	f.db = sharedfile.Pool(path, 1)
	f.Cleanup(func() { f.noError(f.db.Close()) })
	f.exec("PRAGMA journal_mode = WAL")
	provider, err := newProvider(f.db, f.folder)
	f.noError(err)
	_, err = provider.UpTo(f.Context(), f.version)
	f.noError(err)
	sources := provider.ListSources()
	return sources[len(sources)-1].Version
}

func (f *former) noError(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *former) exec(query string, args ...any) {
	f.Helper()
	if _, err := f.db.ExecContext(f.Context(), query, args...); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
}

// columns are those that its tables have now, without those of the migrations.
func (f *former) columns() map[string][]string {
	f.Helper()
	rows, err := f.db.QueryContext(f.Context(), `SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name NOT LIKE 'goose%'`)
	f.noError(err)
	defer rows.Close() //nolint:errcheck // only read
	columns := map[string][]string{}
	for rows.Next() {
		var table, column string
		f.noError(rows.Scan(&table, &column))
		columns[table] = append(columns[table], column)
	}
	f.noError(rows.Err())
	return columns
}

// content is what stands in columns, a line a row.
func (f *former) content(columns map[string][]string) string {
	f.Helper()
	var all strings.Builder
	for _, table := range slices.Sorted(maps.Keys(columns)) {
		for _, row := range f.rows(table, columns[table]) {
			all.WriteString(table + " " + row + "\n")
		}
	}
	return all.String()
}

// rows are what stands in columns of a table.
func (f *former) rows(table string, columns []string) (all []string) {
	f.Helper()
	order := "rowid"
	var without bool
	f.noError(f.db.QueryRowContext(f.Context(), "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?", table).Scan(&without))
	if without {
		order = "1"
	}
	query := fmt.Sprintf("SELECT json_array(%s) FROM %s ORDER BY %s", strings.Join(columns, ", "), table, order)
	rows, err := f.db.QueryContext(f.Context(), query)
	f.noError(err)
	defer rows.Close() //nolint:errcheck // only read
	for rows.Next() {
		var row string
		f.noError(rows.Scan(&row))
		all = append(all, row)
	}
	f.noError(rows.Err())
	return all
}

// rewrite is what the older process writes: all columns that it knows.
func (f *former) rewrite(columns map[string][]string) {
	f.Helper()
	for table, names := range columns {
		sets := make([]string, len(names))
		for i, name := range names {
			sets[i] = name + " = " + name
		}
		f.exec("UPDATE " + table + " SET " + strings.Join(sets, ", "))
	}
}

// upgrade opens the store beside the older process. All that was there stays as it was,
// in the order it was, and the older process reads and writes as before.
func (f *former) upgrade() *Store {
	f.Helper()
	columns := f.columns()
	before := f.content(columns)
	if strings.Count(before, "\n") < 3 {
		f.Fatalf("too few rows to be moved:\n%s", before)
	}
	s := open(f, f.dir, Options{})
	f.rewrite(columns)
	if after := f.content(columns); after != before {
		f.Errorf("before:\n%safter:\n%s", before, after)
	}
	for _, check := range []string{"SELECT count(*) FROM pragma_foreign_key_check", "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"} {
		var wrong int
		f.noError(f.db.QueryRowContext(f.Context(), check).Scan(&wrong))
		if wrong != 0 {
			f.Errorf("%s: %d", check, wrong)
		}
	}
	return s
}

// TestUpgradeOfRegistries: a process of any version before has the registry open while
// a newer one migrates it. Rows of all states are as they were, live threads are
// continued, and what the older process writes is understood.
func TestUpgradeOfRegistries(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const insert = `INSERT INTO threads (thread_id, kind, directive, parent_id, status, result, completed_at, request_key, created_at, updated_at, last_used)
		VALUES (?, 'directive', 'd', ?, ?, ?, ?, ?, 1, 1, 1)`
	formerDatabases(t, "registry", func(f *former) {
		for _, state := range thread.States() {
			if state.Terminal() {
				f.exec(insert, state, "created", state, `{"status":"`+string(state)+`","result":"done"}`, 5, nil)
			} else {
				f.exec(insert, state, nil, state, nil, nil, "key of "+state)
			}
		}
		if _, asks := f.columns()["questions"]; asks {
			f.exec(`INSERT INTO questions (question_id, thread_id, kind, text, details, asked_at, deadline_at)
				VALUES ('q', 'running', 'limit', 'More?', '{"options":["approve","deny"],"default":"deny"}', 1, 2)`)
		}
		claim, err := f.db.PrepareContext(f.Context(), "UPDATE threads SET status = 'running', pid = ?, host = ? WHERE thread_id = ?")
		f.noError(err)
		defer claim.Close() //nolint:errcheck // the test is over
		s := f.upgrade()
		if _, err := claim.ExecContext(f.Context(), 4711, "there", "created"); err != nil {
			f.Errorf("a statement of before: %v", err)
		}
		for _, state := range thread.States()[1:] {
			rec, err := s.Get(f.Context(), thread.ID(state))
			f.noError(err)
			if rec.Status != state || state.Terminal() && (rec.Outcome == nil || rec.Outcome.Result != "done") {
				f.Errorf("row of %s: %+v", state, rec)
			}
		}
		if open, err := s.Questions(f.Context(), store.QuestionFilter{}); err != nil || len(open) != strings.Count(f.content(map[string][]string{"questions": {"question_id"}}), "\n") {
			f.Errorf("questions %+v, %v", open, err)
		}
		f.continued(s, insert)
	})
}

// continued ends what ran before the upgrade, and starts more on both sides.
func (f *former) continued(s *Store, insert string) {
	f.Helper()
	known, err := s.ByRequestKey(f.Context(), "key of running")
	if err != nil || known.ThreadID != "running" {
		f.Errorf("by its request key: %+v, %v", known, err)
	}
	rec, err := s.Get(f.Context(), "created")
	if want := (thread.Process{PID: 4711, Host: "there"}); err != nil || rec.Status != thread.Running || rec.Process != want {
		f.Errorf("claimed by the older process: %+v, %v", rec, err)
	}
	for _, id := range []thread.ID{"created", "running"} {
		change, err := store.Finished(id, thread.Outcome{State: thread.Completed, Result: "after"}, &thread.Cost{Turns: 1}, testTime)
		f.noError(err)
		if rec, err := storetest.As(s).Apply(f.Context(), change); err != nil || rec.Outcome.Result != "after" {
			f.Errorf("ended after the upgrade: %+v, %v", rec, err)
		}
	}
	f.exec(insert, "later", "running", "running", nil, nil, nil)
	id := running(f, s, "e", "later")
	rows, _, err := s.List(f.Context(), store.Filter{})
	if err != nil || len(rows) != len(thread.States())+2 {
		f.Errorf("%d rows, %v", len(rows), err)
	}
	if below, err := s.Descendants(f.Context(), "running"); err != nil || !slices.ContainsFunc(below, func(r thread.Record) bool { return r.ThreadID == id }) {
		f.Errorf("descendants %+v, %v", below, err)
	}
}

// TestOlderProcessTakesNothingOver: a process of any version before, which knows a life by
// a lock of another name, takes a thread that runs for dead. The database keeps it from
// all that it would do then; what it runs itself, and what anybody may ask for, is its
// to write as before.
func TestOlderProcessTakesNothingOver(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	formerDatabases(t, "registry", func(f *former) {
		f.exec(`INSERT INTO threads (thread_id, kind, directive, status, created_at, updated_at, last_used)
			VALUES ('own', 'directive', 'd', 'running', 1, 1, 1)`)
		takeOver := map[string]string{
			"the process": "UPDATE threads SET pid = 0, host = '' WHERE thread_id = ? AND status IN ('created', 'running')",
			"the end":     "UPDATE threads SET status = 'error', result = '{}', completed_at = 5 WHERE thread_id = ? AND status IN ('created', 'running')",
			"the start":   "UPDATE threads SET status = 'running', pid = 1 WHERE thread_id = ? AND status IN ('created', 'running')",
		}
		if slices.Contains(f.columns()["threads"], "run") {
			takeOver["the run"] = "UPDATE threads SET run = 'OLDER' WHERE thread_id = ? AND status IN ('created', 'running')"
		}
		s := open(f, f.dir, Options{})
		n := newThread("d", "")
		n.Run = thread.NewRun()
		rec, _, err := store.Register(f.Context(), s, n, claimNothing)
		f.noError(err)
		_, err = s.Runner(rec.ThreadID, rec.Run).Apply(f.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 4711}, testTime))
		f.noError(err)
		for what, query := range takeOver {
			if _, err := f.db.ExecContext(f.Context(), query, rec.ThreadID); err == nil || !strings.Contains(err.Error(), "newer rye-mcp") {
				f.Errorf("%s is written: %v", what, err)
			}
			f.exec(query, "own")
			f.exec("UPDATE threads SET status = 'running', completed_at = NULL, result = NULL WHERE thread_id = 'own'")
		}
		f.exec("UPDATE threads SET cancel_requested_at = 5, updated_at = 5 WHERE thread_id = ?", rec.ThreadID)
		now, err := s.Get(f.Context(), rec.ThreadID)
		if err != nil || now.Status != thread.Running || now.PID != 4711 || now.Run != rec.Run || now.CancelRequestedAt.IsZero() {
			f.Errorf("it is %+v, %v", now, err)
		}
		change, err := store.Finished(rec.ThreadID, thread.Outcome{State: thread.Completed}, nil, testTime)
		f.noError(err)
		replaced, err := s.Replace(f.Context(), rec.ThreadID, rec.Run, thread.NewRun())
		f.noError(err)
		if _, err := s.Runner(rec.ThreadID, replaced.Run).Apply(f.Context(), change); err != nil {
			f.Errorf("ended by today's: %v", err)
		}
	})
}

// TestUpgradeOfLedgers: money that was held before an upgrade is spent, given back and
// handed over after it as if it had been held since.
func TestUpgradeOfLedgers(t *testing.T) {
	t.Parallel()
	const insert = `INSERT INTO budgets (thread_id, parent_id, max_spend, reserved_spend, actual_spend, own_spend, status, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, 1, 1)`
	formerDatabases(t, "ledger", func(f *former) {
		f.exec(insert, "root", nil, 1000, 300, 150, 100, "active") // has heard of 50 of a child that has ended
		f.exec(insert, "ended", "root", 200, 0, 50, 50, "settled")
		f.exec(insert, "child", "root", 300, 0, 20, 20, "active")
		s := f.upgrade()
		f.wantBudget(s, store.Budget{ThreadID: "root", MaxSpend: 1000, Reserved: 300, Actual: 150, Own: 100, Active: true})

		f.noError(storetest.As(s).Pledge(f.Context(), "child", 30, testTime))
		f.noError(storetest.As(s).Report(f.Context(), "child", 45, testTime))
		left, err := storetest.As(s).HandOver(f.Context(), "child", "successor", testTime)
		if err != nil || left != 255 {
			f.Errorf("handed over %d, %v", left, err)
		}
		f.noError(storetest.As(s).Settle(f.Context(), "child", testTime))
		f.noError(storetest.As(s).Report(f.Context(), "successor", 5, testTime))
		f.noError(storetest.As(s).Settle(f.Context(), "successor", testTime))
		f.exec("UPDATE budgets SET own_spend = own_spend + 1, actual_spend = actual_spend + 1 WHERE thread_id = 'root'")
		f.wantBudget(s, store.Budget{ThreadID: "root", MaxSpend: 1000, Actual: 201, Own: 101, Active: true})
		f.noError(storetest.As(s).Settle(f.Context(), "root", testTime))
	})
}

func (f *former) wantBudget(s *Store, want store.Budget) {
	f.Helper()
	got, err := s.Budget(f.Context(), want.ThreadID)
	got.CreatedAt, got.UpdatedAt = want.CreatedAt, want.UpdatedAt
	if err != nil || got != want {
		f.Errorf("budget %+v, %v, want %+v", got, err, want)
	}
}
