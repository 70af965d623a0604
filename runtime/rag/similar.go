package rag

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rye-mcp/rye-mcp/runtime/rag/vector"
)

// byVector finds the rows whose vectors are nearest to that of the query, the best first.
// It compares the vectors that are in no chapter. Of the others it looks at codes, which
// bound what a cosine can be, and compares those that can be among the best.
func (s search) byVector() ([]*candidate, error) {
	if s.space.model == 0 {
		return nil, nil
	}
	chapters, err := readChapters(s.ctx, s.tx, s.space)
	if err != nil {
		return nil, err
	}
	var closed int64
	if len(chapters) > 0 {
		closed = chapters[len(chapters)-1].through
	}
	best := nearestRows{most: s.depth()}
	if err := s.exactly(afterSeq, closed, best.add); err != nil {
		return nil, err
	}
	if len(chapters) == 0 {
		return best.rows, nil
	}
	for most := firstBounded; ; most *= 16 {
		top, err := s.searchCodes(chapters, most)
		if err != nil {
			return nil, err
		}
		if done, err := s.settle(top, &best); err != nil || done {
			return best.rows, err
		}
	}
}

// firstBounded is how many records are kept for comparison. More are, in another pass, when
// these do not settle which rows are the best: where a filter leaves few of them, or many
// vectors are nearly the same.
const firstBounded = 1024

// compared at once.
const batchSize = 64

// settle compares records, those with the highest bounds first, until no other can be among
// the best. It is not done when one that was not kept can be.
func (s search) settle(top *vector.Top, best *nearestRows) (done bool, err error) {
	left := top.Sorted()
	for len(left) > 0 && best.canImprove(left[0].Bound) {
		batch := left[:min(batchSize, len(left))]
		left = left[len(batch):]
		seqs := make([]int64, len(batch))
		for i, b := range batch {
			seqs[i] = b.Seq
		}
		if err := s.exactly(ofSeqs, list(seqs), best.add); err != nil {
			return false, err
		}
	}
	return !best.canImprove(top.Rest()), nil
}

// nearestRows are the best rows that were compared, in their order.
type nearestRows struct {
	most int
	rows []*candidate
}

// add takes a row that was compared; one that is there already is left out.
func (n *nearestRows) add(c *candidate) {
	at, found := slices.BinarySearchFunc(n.rows, c, nearest)
	if found || at == n.most {
		return
	}
	n.rows = slices.Insert(n.rows, at, c)
	n.rows = n.rows[:min(len(n.rows), n.most)]
}

// canImprove reports whether a row can be among the best whose cosine is at most that.
func (n *nearestRows) canImprove(bound float64) bool {
	if math.IsInf(bound, -1) {
		return false
	}
	return len(n.rows) < n.most || bound >= n.rows[len(n.rows)-1].cosine
}

// nearest orders candidates by their cosine. No two rows are equal.
func nearest(a, b *candidate) int {
	return cmp.Or(cmp.Compare(b.cosine, a.cosine), a.before(b))
}

// searchCodes goes through the codes of all chapters. Files are read by as many goroutines
// as there are processors, each of which has room for one; chapters without a whole file are
// read from the database afterwards.
func (s search) searchCodes(chapters []chapter, most int) (*vector.Top, error) {
	code, selected := vector.NewCode(s.Vector).Query(), s.selector()
	c := coder{ctx: s.ctx, tx: s.tx, dir: s.codes, space: s.space, dimension: len(s.Vector)}
	workers := min(runtime.GOMAXPROCS(0), len(chapters))
	tops := make([]*vector.Top, workers)
	var (
		next    atomic.Int64
		all     sync.WaitGroup
		missing = make([]bool, len(chapters))
	)
	for i := range workers {
		tops[i] = vector.NewTop(most)
		all.Go(func() {
			var room []byte
			for at := int(next.Add(1)) - 1; at < len(chapters) && s.ctx.Err() == nil; at = int(next.Add(1)) - 1 {
				loaded, grown, err := c.dir.Load(c.name(chapters[at]), room)
				if room = grown; err != nil {
					missing[at] = true
					continue
				}
				loaded.Search(code, selected, tops[i])
			}
		})
	}
	all.Wait()
	top := tops[0]
	for _, other := range tops[1:] {
		top.Merge(other)
	}
	for at, of := range chapters {
		if !missing[at] {
			continue
		}
		built, err := c.build(of)
		if err != nil {
			return nil, err
		}
		built.Search(code, selected, top)
	}
	return top, context.Cause(s.ctx)
}

// Parts of a space. The + keeps SQLite from an index over the whole of it where few rows
// are named, as CROSS JOIN keeps it from looking for them among all entries of a project.
const (
	afterSeq  = "v.namespace = ? AND v.model = ? AND v.seq > ?"
	ofSeqs    = "+v.namespace = ? AND +v.model = ? AND v.seq IN (SELECT value FROM json_each(?))"
	ofEntries = "+v.namespace = ? AND +v.model = ? AND v.entry IN (SELECT value FROM json_each(?))"
)

func exactQuery(part string, where conditions) string {
	return "SELECT v.vector, e.id, e.project, e.key FROM vectors AS v CROSS JOIN entries AS e ON e.id = v.entry WHERE " + part + " AND " + where.sql()
}

// exactly compares the stored vectors of a part of the space with that of the query.
func (s search) exactly(part string, arg any, f func(c *candidate)) error {
	args := slices.Concat([]any{s.space.namespace, s.space.model, arg}, s.where.args)
	rows, err := s.tx.QueryContext(s.ctx, exactQuery(part, s.where), args...)
	if err != nil {
		return err
	}
	stored := make([]float32, len(s.Vector))
	return each(rows, func(scan func(...any) error) error {
		c := &candidate{compared: true}
		var encoded sql.RawBytes
		if err := scan(&encoded, &c.id, &c.project, &c.key); err != nil {
			return err
		}
		if err := vector.Decode(stored, encoded); err != nil {
			return err
		}
		if c.cosine = vector.Cosine(s.Vector, stored); !math.IsNaN(c.cosine) { // the stored vector gives a number
			f(c)
		}
		return nil
	})
}

// compare gives each row that was found by its words the cosine of its vector, where that
// can be compared, and makes one candidate of two that are the same row.
func (s search) compare(byText, byVector []*candidate) error {
	if s.space.model == 0 || len(byText) == 0 {
		return nil
	}
	known := map[int64]*candidate{}
	for _, c := range byVector {
		known[c.id] = c
	}
	left := map[int64]*candidate{}
	var ids []int64
	for i, c := range byText {
		if same := known[c.id]; same != nil {
			same.bm25 = c.bm25
			byText[i] = same
			continue
		}
		left[c.id] = c
		ids = append(ids, c.id)
	}
	return s.exactly(ofEntries, list(ids), func(c *candidate) {
		of := left[c.id]
		of.cosine, of.compared = c.cosine, true
	})
}
