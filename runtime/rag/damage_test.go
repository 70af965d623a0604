package rag_test

import (
	"database/sql"
	"errors"
	"os"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
)

// damages are what can be in the place of an index.
func damages(t *testing.T) map[string]func(path string) {
	t.Helper()
	put := func(content string) func(string) {
		return func(path string) {
			for _, ending := range []string{"-wal", "-shm"} {
				_ = os.Remove(path + ending)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	foreign := func(statements ...string) func(string) {
		return func(path string) {
			put("")(path)
			db, err := sql.Open("sqlite", "file:"+path)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range statements {
				if _, err := db.ExecContext(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return map[string]func(string){
		"no database":        put("this is no database, but it is long enough to look like a page of one"),
		"another database":   foreign("CREATE TABLE other (a)"),
		"a forged mark":      foreign("CREATE TABLE place (mark TEXT)", "INSERT INTO place VALUES ('forged')"),
		"a view for a mark":  foreign("CREATE VIEW place AS SELECT '"+mark+"' AS mark", "CREATE TABLE entries (a)"),
		"a mark of no value": foreign("CREATE TABLE place (mark TEXT)"),
	}
}

// TestAttackForeignIndex: a folder brings a database in the place of the index, damaged or of another mark.
// It is set aside unread, the caller is told, and the index begins anew.
func TestAttackForeignIndex(t *testing.T) {
	t.Parallel()
	for name, damage := range damages(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := pathIn(t.TempDir())
			before := open(t, path)
			store(t, before, row("a", "common"))
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}
			opts := rag.At(path, mark)
			var told []rag.Damage
			opts.Damaged = func(d rag.Damage) { told = append(told, d) }
			damage(path)
			x := openWith(t, opts)
			if answer := find(t, x, ask("common")); len(answer.Hits) != 0 {
				t.Errorf("%s", show(answer))
			}
			if len(told) != 1 || told[0].Path != path || told[0].Err == nil {
				t.Fatalf("told %+v", told)
			}
			if name != "no database" && !errors.Is(told[0].Err, rag.ErrForeign) {
				t.Errorf("why: %v", told[0].Err)
			}
			if _, err := os.Lstat(told[0].Aside); err != nil {
				t.Error(err)
			}
			store(t, x, row("b", "common"))
			if answer := find(t, x, ask("common")); keys(answer) != "b" || len(told) != 1 {
				t.Errorf("%s, told %+v", show(answer), told)
			}
		})
	}
}
