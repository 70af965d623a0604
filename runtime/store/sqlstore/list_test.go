package sqlstore_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestListReadsAnIndex asks SQLite how it would read each kind of page of many rows: a
// sort or a scan of the table would make a page slower with every thread.
func TestListReadsAnIndex(t *testing.T) {
	t.Parallel()
	s := open(t)
	err := beside(t, s, numbers+`INSERT INTO threads (thread_id, kind, directive, name, parent_id, metadata, created_at, updated_at, last_used)
		SELECT 't-' || i, 'directive', 'd', 'n' || i, CASE WHEN i > 1 THEN 't-1' END, '{"forked_from":"f","team":"a"}', 1000 + i, 1, 1000 + i FROM n`, 2*sqlstore.Few)
	if err != nil {
		t.Fatal(err)
	}
	filters := map[string]store.Filter{
		"all":            {},
		"one state":      {States: []thread.State{thread.Created}},
		"several states": {States: []thread.State{thread.Created, thread.Running, thread.Error}},
		"directive":      {Directive: "d"},
		"parent":         {ParentID: "t-1"},
		"text":           {Text: "x"},
		"name":           {Name: "x"},
		"age":            {UsedBefore: time.UnixMilli(1000 + sqlstore.Few*3/2), UsedSince: time.UnixMilli(1001)},
		"metadata":       {Metadata: json.RawMessage(`{"team":"a"}`)},
		"forks":          {Metadata: json.RawMessage(`{"forked_from":"f"}`)},
	}
	for name, f := range filters {
		for _, by := range store.SortKeys() {
			for _, ascending := range []bool{false, true} {
				f.Sort = store.Sort{By: by, Ascending: ascending}
				checkPlan(t, s, name, f)
			}
		}
	}
}

// checkPlan checks how the first and the next page of a filter are read.
func checkPlan(t *testing.T, s opened, name string, f store.Filter) {
	t.Helper()
	for _, page := range []string{"first", "next"} {
		next, column, err := sqlstore.NextCursor(f, thread.Record{ThreadID: "t", CreatedAt: testTime, LastUsed: testTime, Name: "n"})
		if err != nil {
			t.Fatal(err)
		}
		if page == "next" {
			f.Cursor = next
		}
		plan := listPlan(t, s, f)
		for _, step := range plan {
			if strings.Contains(step, "TEMP B-TREE") || (strings.HasPrefix(step, "SCAN threads") && !strings.Contains(step, "USING INDEX")) {
				t.Errorf("%s page by %s, %+v: %q in %q", page, name, f.Sort, step, plan)
			}
		}
		bounded := func(step string) bool { return strings.Contains(step, "("+column+",thread_id)") }
		if page == "next" && !slices.ContainsFunc(plan, bounded) {
			t.Errorf("next page by %s, %+v, does not start at its cursor: %q", name, f.Sort, plan)
		}
	}
}

// TestListSortsFew sorts only what an index finds few rows of.
func TestListSortsFew(t *testing.T) {
	t.Parallel()
	s := open(t)
	err := beside(t, s, numbers+`INSERT INTO threads (thread_id, kind, directive, created_at, updated_at, last_used)
		SELECT 't-' || i, 'directive', CASE WHEN i <= ?2 THEN 'few' ELSE 'many' END, 1000 + i, 1, 1000 + i FROM n`, 4*sqlstore.Few, sqlstore.Few)
	if err != nil {
		t.Fatal(err)
	}
	for directive, want := range map[string]string{"few": "USING INDEX threads_directive", "many": "USING INDEX threads_spend"} {
		plan := listPlan(t, s, store.Filter{Directive: directive, Sort: store.Sort{By: store.BySpend}})
		if !strings.Contains(plan[0], want) || strings.Contains(fmt.Sprint(plan), "TEMP B-TREE") != (directive == "few") {
			t.Errorf("%s threads of a directive are read by %q", directive, plan)
		}
	}
}

// TestListByText compares a bounded number of rows with a text for each page, in every
// order, and finds all that there are over the pages, once each.
func TestListByText(t *testing.T) {
	t.Parallel()
	const threads, every = 2*store.MaxScanned + store.MaxScanned/2, 1000
	s := open(t)
	err := beside(t, s, numbers+`INSERT INTO threads (thread_id, kind, directive, name, status, created_at, updated_at, last_used, spend, token_count)
		SELECT 't-' || i, 'directive', 'd', CASE WHEN i % ?2 = 0 THEN 'needle ' || (i % 7) ELSE 'hay ' || (i % 7) END, 'created', 1000 + i / 3, 1, 1000 + i / 5, i % 11, i % 13 FROM n`,
		threads, every)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range store.SortKeys() {
		for _, f := range []store.Filter{{Text: "needle"}, {Name: "needle", States: []thread.State{thread.Created, thread.Error}}, {Text: "straw"}} {
			f.Sort = store.Sort{By: by, Ascending: by == store.BySpend}
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
			want := threads / every
			if f.Text == "straw" {
				want = 0
			}
			if len(found) != want || pages != 3 {
				t.Errorf("%+v finds %d threads in %d pages, want %d in 3", f, len(found), pages, want)
			}
		}
	}
	// A page that is full ends before.
	if rows, next, err := s.List(t.Context(), store.Filter{Text: "needle", Limit: 2}); err != nil || len(rows) != 2 || next == "" {
		t.Errorf("%d rows, next %q, %v", len(rows), next, err)
	}
}

func listPlan(t *testing.T, s opened, f store.Filter) (steps []string) {
	t.Helper()
	var query string
	var args []any
	err := s.Registry().Read(t.Context(), func(ctx context.Context, db *sql.DB) (err error) {
		query, args, err = sqlstore.PlanList(ctx, db, f, 51)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return queryPlan(t, s.Registry(), query, args...)
}
