package rag_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
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

// TestAttackNamedIndex: settings name a file of something else as the index.
// It is refused, and stays as it is where it is.
func TestAttackNamedIndex(t *testing.T) {
	t.Parallel()
	for name, damage := range damages(t) {
		path := filepath.Join(t.TempDir(), "other.db")
		damage(path)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		x := openWith(t, rag.At(path, ""))
		if _, err := x.Store(t.Context(), []rag.Row{row("a", "text")}); !errors.As(err, new(*rag.DamageError)) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := x.Query(t.Context(), ask("text")); !errors.As(err, new(*rag.DamageError)) {
			t.Errorf("%s: %v", name, err)
		}
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s was changed, %v", name, err)
		}
	}
	// One of ours that is damaged is set aside there too.
	path := filepath.Join(t.TempDir(), "mine.db")
	x := rag.New(rag.At(path, ""))
	var rows []rag.Row
	for i := range 300 {
		rows = append(rows, row(fmt.Sprint(i), strings.Repeat("text ", 100)))
	}
	store(t, x, rows...)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	scribble(t, path, 40*4096, 4096*20)
	opts, told := rag.At(path, ""), 0
	opts.Damaged = func(d rag.Damage) { told += d.Saved }
	if status, err := openWith(t, opts).List(t.Context(), rag.Listing{Namespace: "ns", Project: "p"}); err != nil || told == 0 || len(status) != told {
		t.Errorf("%d rows, told of %d, %v", len(status), told, err)
	}
}

// filled is the path of an index of some rows, which nobody has open.
func filled(t *testing.T, rows int) (path string) {
	t.Helper()
	path = pathIn(t.TempDir())
	x := rag.New(rag.At(path, mark))
	var all []rag.Row
	for i := range rows {
		r := row(fmt.Sprintf("%04d", i), fmt.Sprintf("common word%d", i), float32(i+1), 1, 0)
		r.ThreadID = "t"
		all = append(all, r)
	}
	store(t, x, all...)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// scribble writes over a part of a file.
func scribble(t *testing.T, path string, from, size int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(bytes.Repeat([]byte("scribble"), size/8), int64(from))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Of an index of which nothing can be read it cannot be told how many rows are lost; of one that
// is damaged elsewhere it can.
func TestLostCannotBeTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from    int
		unknown bool
	}{"all but the first page": {4096, true}, "the end": {-6 * 4096, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filled(t, 300)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			from := c.from
			if from < 0 {
				from += int(info.Size())
			}
			scribble(t, path, from, int(info.Size())-from)
			opts := rag.At(path, mark)
			var told []rag.Damage
			opts.Damaged = func(d rag.Damage) { told = append(told, d) }
			if _, err := openWith(t, opts).List(t.Context(), rag.Listing{Namespace: "ns", Project: "p"}); err != nil {
				t.Fatal(err)
			}
			if len(told) != 1 || told[0].Unknown != c.unknown || c.unknown && told[0].Saved > 0 {
				t.Errorf("told %+v", told)
			}
		})
	}
}

// Rows of a damaged index that can be read are in the new one, with its words and vectors.
func TestSalvage(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const rows = 600
	path := filled(t, rows)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for page := 30; page < int(info.Size()/4096); page += 7 {
		scribble(t, path, page*4096, 4096)
	}
	opts := rag.At(path, mark)
	var told []rag.Damage
	opts.Damaged = func(d rag.Damage) { told = append(told, d) }
	x := openWith(t, opts)
	for i := 0; len(told) == 0 && i < rows; i++ { // until a page is read that is damaged
		find(t, x, ask(fmt.Sprintf("word%d", i), float32(i+1), 1, 0))
	}
	if len(told) != 1 || told[0].Saved == 0 || told[0].Saved == rows || told[0].Lost == 0 {
		t.Fatalf("told %+v", told)
	}
	listed, err := x.List(t.Context(), rag.Listing{Namespace: "ns", Project: "p"})
	if err != nil || len(listed) != told[0].Saved {
		t.Fatalf("%d rows, %v, told %+v", len(listed), err, told)
	}
	embedded := 0
	for _, r := range listed {
		if r.ThreadID != "t" || !strings.HasPrefix(r.Text, "common word") || !r.CreatedAt.Equal(testTime) {
			t.Errorf("%s", show(r))
		}
		if r.Model != "" {
			embedded++
		}
		if answer := find(t, x, ask(strings.TrimPrefix(r.Text, "common "))); keys(answer) != r.Key {
			t.Errorf("%s is not found: %s", r.Key, show(answer))
		}
	}
	if embedded == 0 {
		t.Error("all vectors are lost")
	}
	if _, err := os.Lstat(told[0].Aside); err != nil {
		t.Error(err)
	}
}

// A process that dies while it brings rows back leaves the rest to the next, and rows that
// were stored meanwhile stay.
func TestSalvageGoesOn(t *testing.T) {
	t.Parallel()
	path := filled(t, 500)
	if err := os.Rename(path, path+".damaged-20260304T050607Z"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := rag.New(rag.At(path, mark))
	cancel() // before the first batch: the file is there, and its rows are not
	if _, err := first.Store(ctx, []rag.Row{row("0001", "another text")}); err == nil {
		t.Fatal("the first process was not stopped")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	x := open(t, path)
	if status, err := x.Status(t.Context()); err != nil || len(status.Namespaces) != 1 || status.Namespaces[0].Rows != 500 {
		t.Fatalf("%s, %v", show(status), err)
	}
	if answer := find(t, x, ask("word499", 500, 1, 0)); !slices.ContainsFunc(answer.Hits, func(h rag.Hit) bool { return h.Key == "0499" && h.By == rag.ByBoth }) {
		t.Errorf("%s", show(answer))
	}
	left, err := filepath.Glob(path + ".damaged-*")
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	store(t, x, row("0002", "a text of now"))
	if _, err := x.Delete(t.Context(), rag.Deletion{Namespace: "ns", Project: "p", Keys: []string{"0003"}}); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path)
	if answer := find(t, again, ask("word2 word3")); len(answer.Hits) != 0 {
		t.Errorf("what was replaced and deleted has come back: %s", show(answer))
	}
}

// Ids of rows have gaps of any size, and the number that was given last is one of a row that is
// gone: bringing rows back costs what they are, whether or not the highest id can be read.
func TestSalvageSkipsGaps(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change  string
		scribed bool
	}{
		"numbers that are gone":  {"UPDATE sqlite_sequence SET seq = 1 << 60", false},
		"the highest number":     {"UPDATE sqlite_sequence SET seq = 9223372036854775807", false},
		"a gap":                  {"UPDATE entries SET id = 1 << 60 WHERE key = '0099'", false},
		"the highest id":         {"UPDATE entries SET id = 9223372036854775807 WHERE key = '0099'", false},
		"no highest id, numbers": {"UPDATE sqlite_sequence SET seq = 9223372036854775807", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const rows = 100
			path := filled(t, rows)
			aside := path + ".damaged-20260304T050607Z"
			if err := os.Rename(path, aside); err != nil {
				t.Fatal(err)
			}
			alter(t, aside, tt.change)
			if tt.scribed {
				scribbleLast(t, aside)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			listed, err := open(t, path).List(ctx, rag.Listing{Namespace: "ns", Project: "p"})
			if err != nil || len(listed) == 0 || len(listed) < rows != tt.scribed {
				t.Errorf("%d rows, %v", len(listed), err)
			}
		})
	}
}

// alter runs a statement on a database, all of which is in its file then.
func alter(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{statement, "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// scribbleLast makes the page unreadable that holds the row of the highest id.
func scribbleLast(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for at := 0; at < len(content); at += page { // leaves of a table begin with 13
		if leaf := content[at : at+page]; leaf[0] == 13 && bytes.Contains(leaf, []byte("p0099t")) {
			scribble(t, path, at, page)
			return
		}
	}
	t.Fatal("no page holds the row")
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
