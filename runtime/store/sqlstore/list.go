package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// List implements [store.Registry]. A page is read by position (what the rows are
// ordered by, and the id, of the last row before it), so its cost does not grow with
// the number of threads before it.
func (s *Store) List(ctx context.Context, f store.Filter) (rows []thread.Record, next string, err error) {
	limit := pageSize(f.Limit)
	l, err := newListing(s.dialect, f, limit+1) // one more tells whether there is a next page
	if err != nil {
		return nil, "", fmt.Errorf("list threads: %w", err)
	}
	var end *position
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, end, err = l.read(ctx, db)
		return err
	})
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("list threads: %w", err)
	case len(rows) > limit:
		rows = rows[:limit]
		next = l.cursor(l.positionOf(rows[limit-1]))
	case end != nil:
		next = l.cursor(*end)
	}
	return rows, next, nil
}

// firstScanned is how many rows are compared with a text at first: a page of what many
// have is full before more are.
const firstScanned = 1000

// read reads a page, and returns where a list by text was looked at that far and not to
// its end.
func (l *listing) read(ctx context.Context, db *sql.DB) (rows []thread.Record, end *position, err error) {
	for _, most := range []int{firstScanned, store.MaxScanned} {
		page := *l
		page.conditions = slices.Clone(l.conditions)
		if end, err = page.bound(ctx, db, most); err != nil {
			return nil, nil, err
		}
		query, args, err := page.plan(ctx, db)
		if err != nil {
			return nil, nil, err
		}
		rows, err = scanAll(db.QueryContext(ctx, query, args...))
		if err != nil || end == nil || len(rows) == l.limit {
			return rows, end, err
		}
	}
	return rows, end, nil
}

// bound adds the texts, ends a list by them where so many rows are to be looked at, and
// returns that place; nil where there are fewer. It is a place, and no number, so that
// nothing is left out where rows come and go between this look and the next.
func (l *listing) bound(ctx context.Context, db *sql.DB, most int) (*position, error) {
	if len(l.texts) == 0 {
		return nil, nil
	}
	all := *l
	all.selected, all.limit, all.offset = "thread_id, "+l.order.column, 1, most-1
	query, args, err := all.plan(ctx, db)
	if err != nil {
		return nil, err
	}
	var end position
	err = db.QueryRowContext(ctx, query, args...).Scan(&end.id, &end.key)
	if err == nil {
		l.addPlace(end, ">=", "<=")
	}
	l.conditions = append(l.conditions, l.texts...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &end, nil
}

func pageSize(limit int) int {
	if limit == 0 {
		return store.DefaultPage
	}
	return min(limit, store.MaxPage)
}

// order is a sort key in the database: what rows are ordered by, and the index that has
// them in that order.
type order struct {
	column string
	place  string // the parameter that column is compared with
	order  string // as ORDER BY has it
	index  string
	// key is where a row stands.
	key func(thread.Record) any
}

func (d Dialect) orderBy(by store.SortKey) order {
	switch by {
	case store.ByLastUsed:
		return order{"last_used", "?", "last_used", "threads_used", func(r thread.Record) any { return millis(r.LastUsed) }}
	case store.ByTokens:
		return order{"token_count", "?", "token_count", "threads_tokens", func(r thread.Record) any { return r.TokenCount }}
	case store.BySpend:
		return order{"spend", "?", "spend", "threads_spend", func(r thread.Record) any { return int64(r.Cost.Spend) }}
	case store.ByName:
		column, place, sorted := d.byName()
		return order{column, place, sorted, "threads_name", func(r thread.Record) any { return r.Name }}
	case store.ByCreated:
	}
	return order{"created_at", "?", "created_at", "threads_created", func(r thread.Record) any { return millis(r.CreatedAt) }}
}

// condition is a part of WHERE.
type condition struct {
	sql   string
	args  []any
	index string // that finds the rows which meet it; empty: there is none
}

// listing is a filter as parts of a statement.
type listing struct {
	dialect    Dialect
	filter     store.Filter
	states     []thread.State // each once
	order      order
	conditions []condition // all but states
	// texts are those conditions that no index helps with. [listing.bound] adds them.
	texts    []condition
	selected string // columns
	limit    int
	offset   int
	labelled bool // rows without metadata are not wanted
}

func newListing(d Dialect, f store.Filter, limit int) (*listing, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	l := &listing{dialect: d, filter: f, order: d.orderBy(f.Sort.By), selected: columns, limit: limit}
	for _, state := range f.States {
		if !slices.Contains(l.states, state) {
			l.states = append(l.states, state)
		}
	}
	if err := l.addCursor(); err != nil {
		return nil, err
	}
	l.addFilter()
	return l, l.addMetadata()
}

func (l *listing) add(index, sql string, args ...any) {
	l.conditions = append(l.conditions, condition{sql, args, index})
}

func (l *listing) addCursor() error {
	if l.filter.Cursor == "" {
		return nil
	}
	at, err := decodeCursor(l.filter)
	if err != nil {
		return err
	}
	l.addPlace(at, "<", ">")
	return nil
}

// addPlace adds the condition that rows stand so to a place: in a list that descends, and
// in one that ascends. On the left a collation would keep SQLite from looking up both in
// the index.
func (l *listing) addPlace(at position, descending, ascending string) {
	than := descending
	if l.filter.Sort.Ascending {
		than = ascending
	}
	l.add("", fmt.Sprintf("(%s, thread_id) %s (%s, ?)", l.order.column, than, l.order.place), at.key, at.id)
}

func (l *listing) addFilter() {
	f := l.filter
	if f.ParentID != "" {
		l.add("threads_parent", "parent_id = ?", f.ParentID)
	}
	if f.Directive != "" {
		l.add("threads_directive", "directive = ?", f.Directive)
	}
	if f.WithoutEntries {
		l.add("", "(parent_id IS NULL OR NOT EXISTS (SELECT 1 FROM sets WHERE set_id = parent_id))")
	}
	if f.Text != "" {
		text := like(f.Text)
		l.texts = append(l.texts, condition{"(" + l.dialect.like("thread_id") + " OR " + l.dialect.like("name") + " OR " + l.dialect.like("directive") + ")", []any{text, text, text}, ""})
	}
	if f.Name != "" {
		l.texts = append(l.texts, condition{l.dialect.like("name"), []any{like(f.Name)}, ""})
	}
	if !f.UsedBefore.IsZero() {
		l.add("threads_used", "last_used < ?", millis(f.UsedBefore))
	}
	if !f.UsedSince.IsZero() {
		l.add("threads_used", "last_used >= ?", millis(f.UsedSince))
	}
}

// like is a pattern that finds a text, see [Dialect.like].
func like(text string) string { return "%" + likeEscaper.Replace(text) + "%" }

// likeEscaper takes the meaning from the wildcards.
var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)
