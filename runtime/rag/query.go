package rag

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/rag/vector"
)

// Query finds what is most like a text, or a vector. Where there is no index, or no such
// namespace, the answer is empty. The error is an [InputError] when the query is not
// accepted.
func (x *Index) Query(ctx context.Context, q Query) (answer Answer, err error) {
	if q, err = q.check(); err != nil {
		return Answer{}, err
	}
	err = x.mending(ctx, false, func(db *database) error {
		if db == nil {
			return nil
		}
		return db.read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
			answer, err = search{ctx: ctx, tx: tx, codes: x.codes(db), Query: q}.answer()
			return err
		})
	})
	if answer.By == "" {
		answer.By = q.method()
	}
	return answer, err
}

// method is how a query looks for rows.
func (q Query) method() Method {
	switch text, vectors := len(terms(q.Text)) > 0, len(q.Vector) > 0; {
	case text && vectors:
		return ByBoth
	case text:
		return ByText
	case vectors:
		return ByVectors
	}
	return ByNothing
}

// search is one query at work.
type search struct {
	Query

	ctx   context.Context //nolint:containedctx // lives exactly as long as the query
	tx    *sql.Tx
	codes vector.Dir
	space space      // namespace, and model of the vector; 0 where there is none yet
	where conditions // of rows that may be found, on entries e
}

// depth is how many rows of each kind are candidates. Ranks beyond it say little.
func (s search) depth() int { return max(50, 4*s.Limit) }

// answer is the outline of a query.
func (s search) answer() (Answer, error) {
	answer := Answer{By: s.method()}
	if found, err := s.prepare(); err != nil || !found {
		return answer, err
	}
	if err := s.count(&answer); err != nil {
		return answer, err
	}
	byText, err := s.byText()
	if err != nil {
		return answer, err
	}
	byVector, err := s.byVector()
	if err != nil {
		return answer, err
	}
	if err := s.compare(byText, byVector); err != nil {
		return answer, err
	}
	ordered := fuse(byText, byVector, s.MinFloor, s.ScoreRatio)
	ordered = ordered[:min(len(ordered), s.Limit)]
	if answer.Hits, err = s.load(ordered); err != nil {
		return answer, err
	}
	answer.Hits = fit(answer.Hits, s.MaxTokens)
	return answer, nil
}

// prepare finds the ids of what the query names; found is false when there is no such
// namespace.
func (s *search) prepare() (found bool, err error) {
	err = s.tx.QueryRowContext(s.ctx, "SELECT id FROM namespaces WHERE name = ?", s.Namespace).Scan(&s.space.namespace)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if len(s.Vector) > 0 {
		err := s.tx.QueryRowContext(s.ctx, "SELECT id FROM models WHERE name = ? AND dimension = ?", s.Model, len(s.Vector)).Scan(&s.space.model)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return false, err
		}
	}
	return true, s.scope()
}

// scope makes the conditions of rows that may be found.
func (s *search) scope() error {
	s.where = conditions{}
	s.where.add("e.namespace = ?", s.space.namespace)
	if s.Project != AllProjects {
		s.where.add("e.project = ?", s.Project)
	}
	if s.ExcludeThread != "" && s.ExcludeChain == "" {
		err := s.tx.QueryRowContext(s.ctx, "SELECT chain_root FROM entries WHERE thread_id = ? AND chain_root <> '' LIMIT 1", s.ExcludeThread).Scan(&s.ExcludeChain)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	for _, excluded := range s.excluded() {
		s.where.add("e.thread_id <> ? AND e.chain_root <> ?", excluded, excluded)
	}
	s.where.addWhere(s.Where)
	return nil
}

// excluded are the thread that is left out, and the root of its chain, which is a thread
// as well.
func (s search) excluded() (ids []string) {
	for _, id := range []string{s.ExcludeThread, s.ExcludeChain} {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// addWhere selects by metadata.
func (c *conditions) addWhere(w Where) {
	for _, name := range slices.Sorted(maps.Keys(w)) {
		c.add("json_extract(e.metadata, ?) IN (SELECT value FROM json_each(?))", "$."+name, list(w[name]))
	}
}

// count tells how many rows there are, and how many of them cannot be compared.
func (s search) count(answer *Answer) error {
	var c conditions
	c.add("namespace = ?", s.space.namespace)
	if s.Project != AllProjects {
		c.add("project = ?", s.Project)
	}
	var all, none, same int
	err := s.tx.QueryRowContext(s.ctx, `SELECT ifnull(sum(entries), 0), ifnull(sum(entries) FILTER (WHERE model = 0), 0),
		ifnull(sum(entries) FILTER (WHERE model <> 0 AND model = ?), 0) FROM counts WHERE `+c.sql(),
		append([]any{s.space.model}, c.args...)...).Scan(&all, &none, &same)
	answer.Rows = all
	if len(s.Vector) > 0 {
		answer.NoVector, answer.OtherModel = none, all-none-same
	}
	return err
}

// candidate is a row that may become a hit.
type candidate struct {
	id           int64
	project, key string
	bm25         float64 // higher is better; 0: its words were not found
	cosine       float64
	compared     bool // cosine is set
}

// before orders candidates that are equal otherwise.
func (c *candidate) before(other *candidate) int {
	return cmp.Or(cmp.Compare(c.project, other.project), cmp.Compare(c.key, other.key))
}

// load reads what is shown of candidates.
func (s search) load(ordered []fused) ([]Hit, error) {
	ids := make([]int64, len(ordered))
	for i, f := range ordered {
		ids[i] = f.id
	}
	rows, err := s.tx.QueryContext(s.ctx, `SELECT id, key, project, text, metadata, thread_id, chain_root, created_at
		FROM entries WHERE id IN (SELECT value FROM json_each(?))`, list(ids))
	if err != nil {
		return nil, err
	}
	hits := make([]Hit, len(ordered))
	err = each(rows, func(scan func(...any) error) error {
		var (
			id, created int64
			h           = Hit{Namespace: s.Namespace}
			metadata    string
		)
		if err := scan(&id, &h.Key, &h.Project, &h.Text, &metadata, &h.ThreadID, &h.ChainRoot, &created); err != nil {
			return err
		}
		at := slices.Index(ids, id)
		h.Metadata, h.CreatedAt = json.RawMessage(metadata), time.UnixMilli(created).UTC()
		h.Score, h.By = ordered[at].score, ordered[at].by
		hits[at] = h
		return nil
	})
	return hits, err
}
