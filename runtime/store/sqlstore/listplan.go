package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// few is how many rows are sorted rather than found in their order.
const few = 500

// plan chooses how a page is read: the index that has the order is walked until the
// page is full, unless another one finds few rows that are then sorted. SQLite would
// choose without knowing how many there are.
func (l *listing) plan(ctx context.Context, db *sql.DB) (query string, args []any, err error) {
	if l.inOrder() {
		query, args = l.perState()
		return query, args, nil
	}
	for _, c := range l.narrowing() {
		var rows int
		count := "SELECT count(*) FROM (SELECT 1 FROM threads INDEXED BY " + c.index + " WHERE " + c.sql + " LIMIT ?) AS found"
		if err := db.QueryRowContext(ctx, count, append(c.args[:len(c.args):len(c.args)], few+1)...).Scan(&rows); err != nil {
			return "", nil, err
		}
		if rows <= few {
			query, args = l.by(c.index)
			return query, args, nil
		}
	}
	query, args = l.walk()
	return query, args, nil
}

// inOrder reports whether the indexes of what is asked for have the newest first.
func (l *listing) inOrder() bool {
	f := l.filter
	return f.Sort.By == store.ByCreated && !l.labelled && f.UsedBefore.IsZero() && f.UsedSince.IsZero()
}

// perState reads a SELECT for each state and merges them: each is read from its own
// index in page order, where "status IN (…)" would sort or scan everything.
func (l *listing) perState() (string, []any) {
	from := "SELECT " + l.selected + " FROM threads"
	where, args := l.where()
	if len(l.states) == 0 {
		if len(where) > 0 {
			from += " WHERE " + strings.Join(where, " AND ")
		}
		return from + l.end(), append(args, l.limit, l.offset)
	}
	var selects []string
	var all []any
	for _, state := range l.states {
		one := from + " WHERE " + strings.Join(append([]string{"status = ?"}, where...), " AND ")
		all = append(append(all, state), args...)
		if l.dialect.sortsUnions() {
			one = "SELECT * FROM (" + one + l.end() + ") AS " + string(state)
			all = append(all, l.limit+l.offset, 0)
		}
		selects = append(selects, one)
	}
	return strings.Join(selects, " UNION ALL ") + l.end(), append(all, l.limit, l.offset)
}

// narrowing are the conditions by which an index finds rows, those of one index as one.
func (l *listing) narrowing() (all []condition) {
	for _, c := range append([]condition{l.inStates()}, l.conditions...) {
		if c.index == "" || c.index == l.order.index {
			continue
		}
		if last := len(all) - 1; last >= 0 && all[last].index == c.index {
			all[last].sql += " AND " + c.sql
			all[last].args = append(all[last].args[:len(all[last].args):len(all[last].args)], c.args...)
			continue
		}
		all = append(all, c)
	}
	return all
}

// inStates is the condition on states; one without an index when there is none.
func (l *listing) inStates() condition {
	if len(l.states) == 0 {
		return condition{}
	}
	return condition{"status IN (SELECT value FROM json_each(?))", []any{jsonList(l.states)}, "threads_status"}
}

// walk reads the index that has the order.
func (l *listing) walk() (string, []any) {
	if l.labelled && l.filter.Sort.By == store.ByCreated {
		return l.by("threads_labelled")
	}
	return l.by(l.order.index)
}

// by reads rows by an index.
func (l *listing) by(index string) (string, []any) {
	where, args := l.where()
	if in := l.inStates(); in.sql != "" {
		where, args = append(where, in.sql), append(args, in.args...)
	}
	query := "SELECT " + l.selected + " FROM threads INDEXED BY " + index
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	return query + l.end(), append(args, l.limit, l.offset)
}

// where are the conditions but that on states.
func (l *listing) where() (where []string, args []any) {
	for _, c := range l.conditions {
		where, args = append(where, c.sql), append(args, c.args...)
	}
	return where, args
}

// end orders the rows and bounds their number.
func (l *listing) end() string {
	direction := "DESC"
	if l.filter.Sort.Ascending {
		direction = "ASC"
	}
	return fmt.Sprintf(" ORDER BY %s %s, thread_id %s LIMIT ? OFFSET ?", l.order.order, direction, direction)
}
