package rag_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite/vec"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/rag/vector"
)

// crowd are vectors as texts have them: of so many subjects, each with its own direction,
// from which those of the subject differ.
type crowd struct {
	r         *rand.Rand
	subjects  [][]float32
	dimension int
}

func newCrowd(dimension, subjects int) *crowd {
	c := &crowd{r: rand.New(rand.NewPCG(7, 11)), dimension: dimension}
	for range subjects {
		c.subjects = append(c.subjects, c.random(nil))
	}
	return c
}

func (c *crowd) random(around []float32) []float32 {
	v := make([]float32, c.dimension)
	for i := range v {
		// A sum of uniform numbers is normal enough, and made quickly.
		n := c.r.Uint64()
		v[i] = float32(int64(n&0xffff)+int64(n>>16&0xffff)+int64(n>>32&0xffff)+int64(n>>48)-2*0xffff) / 0xffff
		if around != nil {
			v[i] += around[i]
		}
	}
	return v
}

func (c *crowd) next() []float32 { return c.random(c.subjects[c.r.IntN(len(c.subjects))]) }

func keyOf(n int) string { return fmt.Sprintf("key-%06d", n) }

// fill stores n rows of a crowd, and tells also of them.
func (c *crowd) fill(b testing.TB, x *rag.Index, n int, also func([]rag.Row)) {
	b.Helper()
	const batch = 2000
	for begin := 0; begin < n; begin += batch {
		rows := make([]rag.Row, min(batch, n-begin))
		for i := range rows {
			rows[i] = row(keyOf(begin+i), fmt.Sprintf("text %x of %d", c.r.Uint32N(5000), begin+i), c.next()...)
		}
		store(b, x, rows...)
		if also != nil {
			also(rows)
		}
	}
}

// vecTable is a table of sqlite-vec, as the driver ships it.
type vecTable struct{ db *sql.DB }

func newVecTable(b testing.TB, dimension int) vecTable {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "vec.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec(fmt.Sprintf("CREATE VIRTUAL TABLE v USING vec0 (e float[%d] distance_metric=cosine)", dimension)); err != nil {
		b.Fatal(err)
	}
	return vecTable{db}
}

func (v vecTable) add(b testing.TB, rows []rag.Row) {
	b.Helper()
	tx, err := v.db.Begin()
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range rows {
		if _, err := tx.Exec("INSERT INTO v (e) VALUES (?)", vector.Encode(r.Vector)); err != nil {
			b.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
}

// nearest are the rows of the ten nearest vectors, by their numbers from 1.
func (v vecTable) nearest(b testing.TB, q []float32) (ids []int) {
	b.Helper()
	rows, err := v.db.QueryContext(context.Background(), "SELECT rowid FROM v WHERE e MATCH ? AND k = 10 ORDER BY distance", vector.Encode(q))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			b.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	return ids
}

// question asks for the ten nearest.
func (c *crowd) question() rag.Query {
	q := ask("", c.next()...)
	q.Limit, q.MinFloor, q.ScoreRatio = 10, -1, 0
	return q
}

// BenchmarkRatioRecall: the ten nearest of 100 000 vectors of 1 536 dimensions.
func BenchmarkRatioRecall(b *testing.B) {
	const most, dimension, questions = 100_000, 1536, 20
	x, few := open(b, pathIn(b.TempDir())), open(b, pathIn(b.TempDir()))
	c, scan := newCrowd(dimension, most/50), newVecTable(b, dimension)
	c.fill(b, x, most, func(rows []rag.Row) { scan.add(b, rows) })
	c.fill(b, few, most/100, nil)
	const what = "ten nearest of 100 000 vectors of 1 536 dimensions"
	b.Run(what+", memory that a search takes/none/nothing is written", func(b *testing.B) {
		b.ReportMetric(float64(peak(b, func() { find(b, x, c.question()) }))/(1<<20), "MB")
		b.ReportMetric(48, "MB-goal")
	})
	var ours, theirs []time.Duration
	missed := 0
	for range questions {
		q := c.question()
		begin := time.Now()
		answer := find(b, x, q)
		ours = append(ours, time.Since(begin))
		begin = time.Now()
		nearest := scan.nearest(b, q.Vector)
		theirs = append(theirs, time.Since(begin))
		for _, id := range nearest {
			if !slices.ContainsFunc(answer.Hits, func(h rag.Hit) bool { return h.Key == keyOf(id-1) }) {
				missed++
			}
		}
	}
	b.Run(what+"/sqlite-vec as the driver ships it/nothing is written", ratio(ours, theirs, 0.2))
	b.Run(what+", missed of them/what sqlite-vec finds/nothing is written", func(b *testing.B) {
		b.ReportMetric(100*float64(missed)/(10*questions), "percent")
		b.ReportMetric(1, "percent-goal")
	})
	b.Run("store of a row beside 100 000/beside 1 000/FULL", ratio(c.stores(b, x), c.stores(b, few), 2))
}

// stores are the times of storing single rows.
func (c *crowd) stores(b *testing.B, x *rag.Index) (took []time.Duration) {
	b.Helper()
	for i := range 100 {
		r := row(fmt.Sprint("another ", i), "another text", c.next()...)
		begin := time.Now()
		store(b, x, r)
		took = append(took, time.Since(begin))
	}
	return took
}

// ratio reports how many times as long something took, by the medians.
func ratio(took, against []time.Duration, goal float64) func(*testing.B) {
	slices.Sort(took)
	slices.Sort(against)
	ours, theirs := took[len(took)/2], against[len(against)/2]
	return func(b *testing.B) {
		b.ReportMetric(float64(ours)/float64(theirs), "x-baseline")
		b.ReportMetric(goal, "x-goal")
		b.Logf("%v against %v", ours, theirs)
	}
}

// peak is by how much the memory of the process grows at most while f runs.
func peak(b *testing.B, f func()) int64 {
	b.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // VmHWM becomes VmRSS
		b.Skip("the peak of memory cannot be told here")
	}
	before := memory(b, "VmRSS:")
	f()
	return memory(b, "VmHWM:") - before
}

// memory reads a line of /proc/self/status, in bytes.
func memory(b *testing.B, name string) int64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), name)
	var kilobytes int64
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		b.Fatal(err)
	}
	return kilobytes << 10
}
