package sqlite

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestListReadsAnIndex asks SQLite how it would read each kind of page: a sort
// or a scan of the table would make the newest page slower with every thread.
func TestListReadsAnIndex(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	for name, f := range map[string]store.Filter{
		"all":            {},
		"one state":      {States: []thread.State{thread.Running}},
		"several states": {States: []thread.State{thread.Created, thread.Running, thread.Error}},
		"directive":      {Directive: "d"},
		"parent":         {ParentID: "p"},
		"text":           {Text: "x"},
	} {
		for _, page := range []string{"first", "next"} {
			if page == "next" {
				f.Cursor = encodeCursor(f, thread.Record{ThreadID: "t", CreatedAt: testTime})
			}
			plan := listPlan(t, s, f)
			for _, step := range plan {
				if strings.Contains(step, "TEMP B-TREE") || (strings.HasPrefix(step, "SCAN threads") && !strings.Contains(step, "USING INDEX")) {
					t.Errorf("%s page by %s: %q in %q", page, name, step, plan)
				}
			}
			if page == "next" && !slices.ContainsFunc(plan, func(step string) bool { return strings.Contains(step, "created_at") }) {
				t.Errorf("next page by %s does not start at its cursor: %q", name, plan)
			}
		}
	}
}

func listPlan(t *testing.T, s *Store, f store.Filter) []string {
	t.Helper()
	query, args, err := listSQL(f, 51)
	if err != nil {
		t.Fatal(err)
	}
	return queryPlan(t, s.registry, query, args...)
}

// queryPlan is how SQLite would run a statement, step by step.
func queryPlan(t *testing.T, d *database, query string, args ...any) (plan []string) {
	t.Helper()
	err := d.read(t.Context(), func(db *sql.DB) error {
		rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
		plan, err = scanEach(rows, err, func(r row) (detail string, err error) {
			var id, parent, unused int
			err = r.Scan(&id, &parent, &unused, &detail)
			return detail, err
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestDescendantsOfACircle: a circle can only be made past this package.
func TestDescendantsOfACircle(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	a := running(t, s, "a", "")
	b := running(t, s, "b", a)
	if err := beside(t, s.registry, "UPDATE threads SET parent_id = ? WHERE thread_id = ?", b, a); err != nil {
		t.Fatal(err)
	}
	below, err := s.Descendants(t.Context(), a)
	if err != nil || len(below) != 1 || below[0].ThreadID != b {
		t.Errorf("below a: %+v, %v", below, err)
	}
	if marked, err := s.RequestCancel(t.Context(), a, testTime); err != nil || len(marked) != 2 {
		t.Errorf("marked: %+v, %v", marked, err)
	}
}

func FuzzCursor(f *testing.F) {
	filter := store.Filter{Directive: "d"}
	f.Add(encodeCursor(filter, thread.Record{ThreadID: "d-1", CreatedAt: testTime}))
	f.Add("")
	f.Add("e30")
	f.Add("eyJjIjoxLCJpIjoiLi4vLi4ifQ")
	f.Fuzz(func(t *testing.T, text string) {
		filter := filter
		filter.Cursor = text
		at, err := decodeCursor(filter)
		if err != nil {
			if !errors.Is(err, store.ErrBadCursor) {
				t.Errorf("refused with %v", err)
			}
			return
		}
		last := thread.Record{ThreadID: at.id, CreatedAt: fromMillis(at.created)}
		filter.Cursor = encodeCursor(filter, last)
		if again, err := decodeCursor(filter); err != nil || again != at {
			t.Errorf("%+v came back as %+v, %v", at, again, err)
		}
	})
}
