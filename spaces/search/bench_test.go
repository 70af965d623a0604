package search_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
)

// manyItems are written for the rows of make bench.
const manyItems = 10_000

// library of so many items in folders of a hundred, of 150 words each.
func manyWorld(b *testing.B) *world {
	b.Helper()
	w := newWorld(b, nil)
	r := rand.New(rand.NewPCG(1, 2))
	common := rand.NewZipf(r, 1.1, 5, 20_000)
	for i := range manyItems {
		var body strings.Builder
		for range 150 {
			fmt.Fprintf(&body, "w%x ", common.Uint64())
		}
		name := fmt.Sprintf("project/knowledge/group%02d/note%04d.md", i/100, i)
		w.write(name, knowledge(fmt.Sprintf("Note %d about w%x", i, common.Uint64()), "bench", body.String()))
	}
	return w
}

// BenchmarkRatioSearch: 10 000 items, each against the least that does it.
func BenchmarkRatioSearch(b *testing.B) {
	w := manyWorld(b)
	w.readAll(b) // the runs below find the files in memory
	least := best(3, func() { w.indexBare(b) })
	cold := best(3, func() {
		if err := os.RemoveAll(filepath.Dir(w.db)); err != nil {
			b.Fatal(err)
		}
		x, err := search.OpenWith(context.Background(), w.db, resolve.New(w.roots), search.TestOptions{Patience: time.Hour})
		if err != nil {
			b.Fatal(err)
		}
		find(b, x, search.Query{Text: "w3", Limit: 1})
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("search of 10 000 items without an index/reading their files into a bare FTS5 table/NORMAL", ratio(cold, least, 4))
	x := w.open()
	query := search.Query{Text: "w3 w5*"}
	find(b, x, query)
	warm := best(9, func() { find(b, x, query) })
	listing := best(9, func() { w.list(b) })
	bare := best(9, func() { w.bare(b) })
	b.Run("search of 10 000 items, with the look whether they changed/listing their files and a bare FTS5 query/nothing is written", ratio(warm, listing+bare, 3))
	n := 0
	refresh := best(9, func() {
		n++
		w.write("project/knowledge/group50/note5000.md", knowledge("Changed", "bench", strings.Repeat("changed ", n)))
		find(b, x, query)
	})
	b.Run("search of 10 000 items after one has changed/before/NORMAL", ratio(refresh, warm, 1.5))
}

// BenchmarkRatioSearchBeside: a search in a project of so many threads that have ended,
// against one of few.
func BenchmarkRatioSearchBeside(b *testing.B) {
	beside := func(threads int) time.Duration {
		w := newWorld(b, library())
		for i := range threads {
			w.write(fmt.Sprintf("project/knowledge/agent/threads/work/work-%d.md", i), knowledge("Work", "records", "what it said"))
		}
		x := w.open()
		query := search.Query{Text: "what"}
		find(b, x, query)
		return best(9, func() { find(b, x, query) })
	}
	few := beside(1000)
	for _, thousands := range []int{10, 100} {
		b.Run(fmt.Sprintf("search with %d 000 threads/with 1 000/nothing is written", thousands), ratio(beside(1000*thousands), few, 1.5))
	}
}

// ratio reports how many times as long something took.
func ratio(took, against time.Duration, goal float64) func(*testing.B) {
	return func(b *testing.B) {
		b.ReportMetric(float64(took)/float64(against), "x-baseline")
		b.ReportMetric(goal, "x-goal")
		b.Logf("%v against %v", took, against)
	}
}

// best is the shortest of some times.
func best(times int, do func()) time.Duration {
	shortest := time.Hour
	for range times {
		start := time.Now()
		do()
		shortest = min(shortest, time.Since(start))
	}
	return shortest
}

func (w *world) walk(b *testing.B, file func(path string, d fs.DirEntry) error) {
	b.Helper()
	err := filepath.WalkDir(filepath.Join(w.roots.Project, ".ai"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return file(path, d)
	})
	if err != nil {
		b.Fatal(err)
	}
}

func (w *world) readAll(b *testing.B) {
	w.walk(b, func(path string, _ fs.DirEntry) error {
		_, err := os.ReadFile(path)
		return err
	})
}

// indexBare puts the text of each file into a table of words, in one transaction.
func (w *world) indexBare(b *testing.B) {
	path := filepath.Join(b.TempDir(), "bare.db")
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String()+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec("CREATE VIRTUAL TABLE words USING fts5 (body, content = '', contentless_delete = 1)"); err != nil {
		b.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		b.Fatal(err)
	}
	insert, err := tx.Prepare("INSERT INTO words (body) VALUES (?)")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = insert.Close() }()
	w.walk(b, func(path string, _ fs.DirEntry) error {
		text, err := os.ReadFile(path)
		if err == nil {
			_, err = insert.Exec(string(text))
		}
		return err
	})
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
}

// list looks at the size and the time of each file.
func (w *world) list(b *testing.B) {
	w.walk(b, func(_ string, d fs.DirEntry) error {
		_, err := d.Info()
		return err
	})
}

// bare asks the index of the items without anything around it.
func (w *world) bare(b *testing.B) {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: w.db}).String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(context.Background(), `SELECT rowid FROM words WHERE words MATCH '"w3" AND "w5"*' ORDER BY bm25(words, 3.0, 3.0, 2.0, 1.5, 1.0, 0.0) LIMIT 20`)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
}
