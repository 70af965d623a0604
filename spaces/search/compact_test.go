package search_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/search"
)

// TestForget takes an entry out of the index whose file is gone; others stay.
func TestForget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, library())
	x := w.open()
	w.write("project/knowledge/agent/threads/a/a-1.md", knowledge("A", "", "xylophone"))
	w.write("user/knowledge/agent/threads/a/a-1.md", knowledge("A", "", "xylophone"))
	if page := find(t, x, search.Query{Text: "xylophone", Threads: true}); page.Total == 0 {
		t.Fatal("nothing is indexed")
	}
	if err := os.Remove(w.path("project/knowledge/agent/threads/a/a-1.md")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := x.Forget(t.Context(), []string{"agent/threads/a/a-1", "agent/threads/never", "'"}); err != nil {
			t.Fatal(err)
		}
	}
	rows := rowsOf(t, w.db, "SELECT count(*) FROM items WHERE id = 'agent/threads/a/a-1'")
	if rows != 1 {
		t.Errorf("%d rows are left, that of the user is 1", rows)
	}
	wantIDs(t, x, "injection", "project/directive/review/security")
}

// TestCompact makes an index smaller that holds less than it did, and changes nothing
// that can be found.
func TestCompact(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	w := newWorld(t, library())
	x := w.open()
	for i := range 200 {
		w.write(numbered(i), knowledge("A", "", numberedText(i)))
	}
	if _, err := x.Search(t.Context(), search.Query{Text: "*"}); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if err := os.Remove(w.path(numbered(i))); err != nil {
			t.Fatal(err)
		}
	}
	wantIDs(t, x, "injection", "project/directive/review/security")
	c, err := x.Compact(t.Context())
	if err != nil || c.Kept != "" || c.After >= c.Before/2 || c.After == 0 {
		t.Errorf("compacted %+v, %v", c, err)
	}
	wantIDs(t, x, "injection", "project/directive/review/security")
}

func numbered(i int) string { return fmt.Sprintf("project/knowledge/n/n%d.md", i) }

// numberedText has some hundred words that no other has.
func numberedText(i int) string {
	var b strings.Builder
	for word := range 300 {
		fmt.Fprintf(&b, "w%dx%d ", i, word)
	}
	return b.String()
}

func rowsOf(t *testing.T, path, query string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
