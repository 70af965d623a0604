package rag_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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

// fill stores n rows of a crowd, and in db, if there is one, the same vectors.
func (c *crowd) fill(b testing.TB, x *rag.Index, n int, also func([]rag.Row)) {
	b.Helper()
	const batch = 2000
	for begin := 0; begin < n; begin += batch {
		rows := make([]rag.Row, min(batch, n-begin))
		for i := range rows {
			rows[i] = row(fmt.Sprintf("key-%06d", begin+i), fmt.Sprintf("text %x of %d", c.r.Uint32N(5000), begin+i), c.next()...)
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

// BenchmarkRatioRecall: the ten nearest of 100 000 vectors of 1 536 dimensions.
func BenchmarkRatioRecall(b *testing.B) {
	const n, dimension = 100_000, 1536
	x := open(b, pathIn(b.TempDir()))
	c, theirs := newCrowd(dimension, 2000), newVecTable(b, dimension)
	begin := time.Now()
	c.fill(b, x, n, func(rows []rag.Row) { theirs.add(b, rows) })
	b.Logf("made in %v", time.Since(begin))
	var ours, vec []time.Duration
	found, wanted := 0, 0
	var memory uint64
	for i := range 21 {
		q := ask("", c.next()...)
		q.Limit, q.MinFloor, q.ScoreRatio = 10, -1, 0
		begin := time.Now()
		answer := find(b, x, q)
		ours = append(ours, time.Since(begin))
		begin = time.Now()
		exact := theirs.nearest(b, q.Vector)
		vec = append(vec, time.Since(begin))
		if i == 0 { // the first one finds nothing in memory
			memory = rss(b)
			ours, vec = nil, nil
			continue
		}
		for _, id := range exact {
			wanted++
			if slices.ContainsFunc(answer.Hits, func(h rag.Hit) bool { return h.Key == fmt.Sprintf("key-%06d", id-1) }) {
				found++
			}
		}
	}
	_ = memory
	slices.Sort(ours)
	slices.Sort(vec)
	b.Logf("ours %v, sqlite-vec %v, %d of %d", ours[len(ours)/2], vec[len(vec)/2], found, wanted)
}

func rss(testing.TB) uint64 {
	runtime.GC()
	_, _ = os.ReadFile("/proc/self/status")
	return 0
}
