package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// List implements [store.Registry]. A page is read by position (creation time
// and id of the last row before it), so its cost does not grow with the number
// of threads before it. Threads created in the same millisecond come in
// descending order of their ids.
func (s *Store) List(ctx context.Context, f store.Filter) (rows []thread.Record, next string, err error) {
	limit, err := pageSize(f.Limit)
	if err != nil {
		return nil, "", fmt.Errorf("list threads: %w", err)
	}
	query, args, err := listSQL(f, limit+1) // one more tells whether there is a next page
	if err != nil {
		return nil, "", fmt.Errorf("list threads: %w", err)
	}
	err = s.registry.read(ctx, func(db *sql.DB) (err error) {
		rows, err = scanAll(db.QueryContext(ctx, query, args...))
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list threads: %w", err)
	}
	if len(rows) > limit {
		rows = rows[:limit]
		next = encodeCursor(f, rows[limit-1])
	}
	return rows, next, nil
}

func pageSize(limit int) (int, error) {
	switch {
	case limit < 0:
		return 0, fmt.Errorf("limit %d is negative", limit)
	case limit == 0:
		return store.DefaultPage, nil
	}
	return min(limit, store.MaxPage), nil
}

// listSQL builds one SELECT a state and merges them: each is read from its own
// index in page order, where "status IN (…)" would sort or scan everything.
func listSQL(f store.Filter, limit int) (string, []any, error) {
	var where []string
	var args []any
	add := func(condition string, values ...any) {
		where = append(where, condition)
		args = append(args, values...)
	}
	if f.Cursor != "" {
		at, err := decodeCursor(f)
		if err != nil {
			return "", nil, err
		}
		add("(created_at, thread_id) < (?, ?)", at.created, at.id)
	}
	if f.Directive != "" {
		add("directive = ?", f.Directive)
	}
	if f.ParentID != "" {
		add("parent_id = ?", f.ParentID)
	}
	if f.WithoutEntries {
		add("(parent_id IS NULL OR NOT EXISTS (SELECT 1 FROM sets WHERE set_id = parent_id))")
	}
	if f.Text != "" {
		like := "%" + likeEscaper.Replace(f.Text) + "%"
		add(`(thread_id LIKE ? ESCAPE '\' OR name LIKE ? ESCAPE '\' OR directive LIKE ? ESCAPE '\')`, like, like, like)
	}
	selects, all, err := perState(f.States, where, args)
	if err != nil {
		return "", nil, err
	}
	query := strings.Join(selects, " UNION ALL ") + " ORDER BY created_at DESC, thread_id DESC LIMIT ?"
	return query, append(all, limit), nil
}

// perState returns a SELECT for each distinct state, or one for all of them.
func perState(states []thread.State, where []string, args []any) (selects []string, all []any, err error) {
	from := "SELECT " + columns + " FROM threads"
	if len(states) == 0 {
		if len(where) > 0 {
			from += " WHERE " + strings.Join(where, " AND ")
		}
		return []string{from}, args, nil
	}
	seen := make(map[thread.State]bool)
	for _, state := range states {
		if !state.Valid() {
			return nil, nil, fmt.Errorf("%q is not a state of a thread; there are %v", state, thread.States())
		}
		if seen[state] {
			continue
		}
		seen[state] = true
		conditions := append([]string{"status = ?"}, where...)
		selects = append(selects, from+" WHERE "+strings.Join(conditions, " AND "))
		all = append(append(all, state), args...)
	}
	return selects, all, nil
}

// likeEscaper takes the meaning from the wildcards of LIKE.
var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)
