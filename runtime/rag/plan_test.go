package rag

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A search reads the rows that it names and no others, whatever is beside them.
func TestPlans(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memory.db")
	x := New(At(path, "mark"))
	if _, err := x.Store(t.Context(), []Row{{Namespace: "ns", Key: "k", Text: "text", Model: "m", Vector: []float32{1}, CreatedAt: time.Unix(1, 0)}}); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it was only read
	var where conditions
	where.add("e.namespace = ? AND e.project = ?")
	for part, want := range map[string]string{
		afterSeq:  "vectors_by_space (namespace=? AND model=? AND seq>?)",
		ofSeqs:    "v USING INTEGER PRIMARY KEY (rowid=?)",
		ofEntries: "v USING INDEX sqlite_autoindex_vectors_1 (entry=?)",
	} {
		rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+exactQuery(part, where), 1, 1, 1, 1, "p")
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		err = each(rows, func(scan func(...any) error) error {
			var id, parent, none int
			var detail string
			err := scan(&id, &parent, &none, &detail)
			plan = append(plan, detail)
			return err
		})
		if got := fmt.Sprint(plan); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s is read by %s, want %s, %v", part, got, want, err)
		}
	}
}
