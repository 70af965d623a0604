package rag

import (
	"cmp"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/rag/vector"
)

// byVector finds the rows whose vectors are nearest to that of the query, the best first.
func (s search) byVector() ([]*candidate, error) {
	if s.space.model == 0 {
		return nil, nil
	}
	var found []*candidate
	err := s.exactly("v.seq > ?", 0, func(_ int64, c *candidate) { found = append(found, c) })
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, nearest)
	return found[:min(len(found), s.depth())], nil
}

// nearest orders candidates by their cosine.
func nearest(a, b *candidate) int {
	return cmp.Or(cmp.Compare(b.cosine, a.cosine), a.before(b))
}

// exactly compares the stored vectors of a part of the space with that of the query.
func (s search) exactly(part string, arg any, f func(seq int64, c *candidate)) error {
	args := slices.Concat([]any{s.space.namespace, s.space.model, arg}, s.where.args)
	rows, err := s.tx.QueryContext(s.ctx, `SELECT v.seq, v.vector, e.id, e.project, e.key
		FROM vectors AS v JOIN entries AS e ON e.id = v.entry
		WHERE v.namespace = ? AND v.model = ? AND `+part+" AND "+s.where.sql(), args...)
	if err != nil {
		return err
	}
	stored := make([]float32, len(s.Vector))
	return each(rows, func(scan func(...any) error) error {
		c := &candidate{compared: true}
		var seq int64
		var encoded []byte
		if err := scan(&seq, &encoded, &c.id, &c.project, &c.key); err != nil {
			return err
		}
		if err := vector.Decode(stored, encoded); err != nil {
			return err
		}
		c.cosine = vector.Cosine(s.Vector, stored)
		f(seq, c)
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
	return s.exactly("v.entry IN (SELECT value FROM json_each(?))", list(ids), func(_ int64, c *candidate) {
		of := left[c.id]
		of.cosine, of.compared = c.cosine, true
	})
}
