package rag

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/rag/vector"
)

// Listing selects rows without a search.
type Listing struct {
	Namespace string
	Project   string   // AllProjects means all
	Keys      []string // empty means any
	ThreadIDs []string // empty means any
	Where     Where
	Vectors   bool  // with the vectors
	Limit     int   // at most; 0 means no bound
	After     int64 // the ID of the last row of the page before; 0: from the newest
}

// Listed is a row that was listed. Its ID is for Listing.After.
type Listed struct {
	Row

	ID int64
}

// List returns rows, the last one stored first. Where there is no index there are none.
func (x *Index) List(ctx context.Context, l Listing) (found []Listed, err error) {
	if err := checkNames(map[string]string{"namespace": l.Namespace, "project": l.Project}); err != nil {
		return nil, err
	}
	if err := l.Where.check(); err != nil {
		return nil, err
	}
	limit := -1
	if l.Limit > 0 {
		limit = l.Limit
	}
	where := l.conditions()
	err = x.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT e.id, e.project, e.key, e.thread_id, e.chain_root, e.created_at, e.metadata, e.text,
			ifnull(m.name, ''), ifnull(m.dimension, 0), CASE WHEN ? THEN (SELECT vector FROM vectors WHERE entry = e.id) END
			FROM entries AS e LEFT JOIN models AS m ON m.id = e.model WHERE `+where.sql()+` ORDER BY e.id DESC LIMIT ?`,
			append(append([]any{l.Vectors}, where.args...), limit)...)
		if err != nil {
			return err
		}
		found = nil
		return each(rows, func(scan func(...any) error) error {
			r := Listed{Row: Row{Namespace: l.Namespace}}
			var created int64
			var metadata string
			var encoded []byte
			err := scan(&r.ID, &r.Project, &r.Key, &r.ThreadID, &r.ChainRoot, &created, &metadata, &r.Text, &r.Model, &r.Dimension, &encoded)
			r.CreatedAt, r.Metadata = time.UnixMilli(created).UTC(), json.RawMessage(metadata)
			r.Vector = decoded(encoded, r.Dimension)
			found = append(found, r)
			return err
		})
	})
	return found, err
}

// decoded is a vector as it was stored; nil where that is none.
func decoded(encoded []byte, dimension int) []float32 {
	if len(encoded) == 0 || dimension < 1 || dimension > vector.MaxDimension {
		return nil
	}
	v := make([]float32, dimension)
	if vector.Decode(v, encoded) != nil {
		return nil
	}
	if _, err := vector.Unit(v); err != nil {
		return nil
	}
	return v
}

func (l Listing) conditions() (c conditions) {
	c.add("e.namespace = (SELECT id FROM namespaces WHERE name = ?)", l.Namespace)
	c.addNamed(l.Project, l.Keys, l.ThreadIDs)
	if l.After > 0 {
		c.add("e.id < ?", l.After)
	}
	c.addWhere(l.Where)
	return c
}
