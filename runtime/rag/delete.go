package rag

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
)

// Delete takes rows away, with their words and vectors, and returns how many there were.
func (x *Index) Delete(ctx context.Context, d Deletion) (deleted int, err error) {
	where, err := d.statement()
	if err != nil {
		return 0, err
	}
	if db, err := x.open(ctx, false); err == nil && db == nil {
		return 0, nil // there is no file, and none is made for this
	}
	err = x.change(ctx, func(w *writer) error {
		if err := w.touch(where); err != nil {
			return err
		}
		gone, err := w.tx.ExecContext(w.ctx, "DELETE FROM entries AS e WHERE "+where.sql(), where.args...)
		if err != nil {
			return err
		}
		n, err := gone.RowsAffected()
		deleted = int(n)
		return err
	})
	return deleted, err
}

// statement selects the rows of a deletion.
func (d Deletion) statement() (conditions, error) {
	var c conditions
	for field, name := range map[string]string{"namespace": d.Namespace, "project": d.Project} {
		if err := checkName(field, name, false); err != nil {
			return c, err
		}
	}
	switch {
	case len(d.Keys) == 0 && len(d.ThreadIDs) == 0 && !d.All:
		return c, refuse("keys", "there are none; name keys, a thread, or say that all is meant")
	case d.Namespace == "" && (len(d.Keys) > 0 || d.All):
		return c, refuse("namespace", "it is empty; keys are those of one namespace")
	}
	if d.Namespace != "" {
		c.add("e.namespace = (SELECT id FROM namespaces WHERE name = ?)", d.Namespace)
	}
	c.addNamed(d.Project, d.Keys, d.ThreadIDs)
	return c, nil
}

// touch notes the spaces of the rows that are deleted.
func (w *writer) touch(where conditions) (err error) {
	rows, err := w.tx.QueryContext(w.ctx, "SELECT DISTINCT e.namespace, e.model FROM entries AS e WHERE e.model <> 0 AND "+where.sql(), where.args...)
	if err != nil {
		return err
	}
	return each(rows, func(scan func(...any) error) error {
		var s space
		err := scan(&s.namespace, &s.model)
		w.touched[s] = true
		return err
	})
}

// conditions are parts of a WHERE, all of which must hold, with their arguments.
type conditions struct {
	parts []string
	args  []any
}

func (c *conditions) add(part string, args ...any) {
	c.parts = append(c.parts, part)
	c.args = append(c.args, args...)
}

// addNamed selects rows of a project, with one of some keys, and of one of some threads; of
// keys and threads that are not given all are meant.
func (c *conditions) addNamed(project string, keys, threads []string) {
	if project != AllProjects {
		c.add("e.project = ?", project)
	}
	if len(keys) > 0 {
		c.add("e.key IN (SELECT value FROM json_each(?))", list(keys))
	}
	if len(threads) > 0 {
		c.add("e.thread_id IN (SELECT value FROM json_each(?)) AND e.thread_id <> ''", list(threads))
	}
}

func (c conditions) sql() string {
	if len(c.parts) == 0 {
		return "TRUE"
	}
	return strings.Join(c.parts, " AND ")
}

// list is a parameter for json_each.
func list[T any](values []T) string {
	encoded, _ := json.Marshal(values) // numbers and strings always can be
	return string(encoded)
}

// each calls f for every row, and closes rows.
func each(rows *sql.Rows, f func(scan func(...any) error) error) error {
	defer rows.Close() //nolint:errcheck // Err says what went wrong
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
