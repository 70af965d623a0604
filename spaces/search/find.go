package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search/query"
)

// weights are those of the columns of the words table, in their order: title,
// name, description, category, body, every.
const weights = "3.0, 3.0, 2.0, 1.5, 1.0, 0.0"

// maxFinding is how long the database may look for hits. A query that takes longer
// asks for nearly everything in many ways.
const maxFinding = 20 * time.Second

// ErrTooLong says that a query was given up.
var ErrTooLong = errors.New("the query takes too long; search for fewer words, for longer beginnings of words, or in a narrower scope")

// row is an item that was found, as the index has it.
type row struct {
	resolve.Entry
	doc                int64
	spaceRank, extRank int
	rank               float64 // higher is better
	exact              int     // 2: the query is its id; 1: its name
	changed            int64
}

// find answers a query from the tables as they are.
func (x *Index) find(ctx context.Context, l *lookup) (Page, error) {
	page := Page{Results: []Hit{}, Query: l.Text, Scope: l.Scope, Limit: l.Limit, Offset: l.Offset}
	limited, cancel := context.WithTimeoutCause(ctx, x.maxFinding, ErrTooLong)
	defer cancel()
	hits, err := x.ranking(limited, l)
	if err != nil {
		return page, orTooLong(limited, err)
	}
	rows, total, best, err := x.page(limited, hits, l)
	if err != nil {
		return page, orTooLong(limited, err)
	}
	page.Total = total
	shown := shower{read: x.src, terms: l.terms()}
	for _, r := range rows {
		hit, ok := shown.hit(r)
		if !ok { // the file has gone since it was listed
			continue
		}
		hit.Score = score(r, best)
		if l.Sort == ByDate && r.changed != 0 {
			at := time.UnixMicro(r.changed).UTC()
			hit.Changed = &at
		}
		if err := x.shadowing(ctx, r, &hit); err != nil {
			return page, err
		}
		page.Results = append(page.Results, hit)
	}
	if total > 0 {
		return page, nil
	}
	if page.Hint, err = x.hint(limited, l); errors.Is(orTooLong(limited, err), ErrTooLong) {
		return page, nil // the answer is there without it
	}
	return page, err
}

func orTooLong(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), ErrTooLong) {
		return ErrTooLong // without that of the database, which has not failed
	}
	return err
}

// score is relative to the best hit.
func score(r row, best float64) float64 {
	if best > 0 && r.exact == 0 {
		return math.Round(r.rank/best*1e4) / 1e4
	}
	return 1
}

// statement is SQL with its arguments.
type statement struct {
	sql  string
	args []any
}

func (s *statement) add(sql string, args ...any) {
	s.sql += sql
	s.args = append(s.args, args...)
}

// ranking is a WITH clause for the documents that match, with their rank. The
// ranking function works only where the words table is read, so its result is
// kept in a table of its own.
func (x *Index) ranking(ctx context.Context, l *lookup) (statement, error) {
	const hits = "WITH hits AS MATERIALIZED ("
	s := statement{sql: hits + "SELECT items.doc AS doc, 0.0 AS rank FROM items WHERE true"}
	expression, err := x.expression(ctx, l)
	if err != nil {
		return s, err
	}
	if expression != "" {
		// bm25 is lower for better matches.
		s.sql = hits + "SELECT items.doc AS doc, -bm25(words, " + weights + ") AS rank" +
			" FROM words JOIN items ON items.doc = words.rowid WHERE words MATCH ?"
		s.args = append(s.args, expression)
	}
	l.within.restrict(&s)
	if l.Source != "" {
		s.add(" AND items.space = ?", l.Source)
	}
	for _, f := range l.filters {
		if err := x.filter(ctx, &s, f); err != nil {
			return s, err
		}
	}
	s.sql += ")"
	return s, nil
}

// expression is what FTS5 is asked; empty for everything.
func (x *Index) expression(ctx context.Context, l *lookup) (string, error) {
	var parts []string
	for _, p := range l.parts {
		if p.node.Op == query.All {
			continue
		}
		m := query.Matcher{Columns: p.fields, Near: l.Near}
		if l.Fuzzy > 0 {
			spellings, err := x.spellings(ctx, p.node, l.Fuzzy)
			if err != nil {
				return "", err
			}
			m.Spellings = func(word string) []string { return spellings[word] }
		}
		parts = append(parts, m.Match(p.node))
	}
	return strings.Join(parts, " AND "), nil
}

// restrict adds what a scope allows to the conditions of hits.
func (within scope) restrict(s *statement) {
	if !within.threads {
		s.add(" AND NOT (items.kind = ? AND items.id GLOB ?)", item.Knowledge, item.ThreadRecords+"/*")
	}
	if within.kind != "" {
		s.add(" AND items.kind = ?", within.kind)
	}
	if len(within.globs) == 0 {
		return
	}
	alternatives := make([]string, len(within.globs))
	for i, glob := range within.globs {
		alternatives[i] = "replace(items.id, '/', '.') GLOB ?"
		s.args = append(s.args, glob)
	}
	s.sql += " AND (" + strings.Join(alternatives, " OR ") + ")"
}

// filter adds a filter to the conditions of hits. The values that one with an
// operator wants are chosen among those that there are.
func (x *Index) filter(ctx context.Context, s *statement, f filter) error {
	switch f.key {
	case dateFrom:
		s.add(" AND items.changed >= ?", f.at)
		return nil
	case dateTo:
		s.add(" AND items.changed BETWEEN 1 AND ?", f.at)
		return nil
	}
	values := f.values
	if f.op != "" && f.op != "!" {
		known, err := column[string](ctx, x.db,
			"SELECT DISTINCT fact.value ->> 1 FROM items, json_each(items.facts) AS fact WHERE fact.value ->> 0 = ?", f.key)
		if err != nil {
			return err
		}
		values = slices.DeleteFunc(known, func(v string) bool { return !f.holds(v) })
	}
	list, err := json.Marshal(values)
	if err != nil {
		return err
	}
	not := ""
	if f.op == "!" {
		not = "NOT "
	}
	s.add(" AND "+not+`EXISTS (SELECT 1 FROM json_each(items.facts) AS fact WHERE fact.value ->> 0 = ?
		AND fact.value ->> 1 COLLATE NOCASE IN (SELECT wanted.value FROM json_each(?) AS wanted))`, f.key, string(list))
	return nil
}

// column reads the one column of all rows.
func column[T any](ctx context.Context, db *sql.DB, query string, args ...any) (all []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var one T
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// orders are the orders of results. All end with what tells two items apart.
var orders = map[Sort]string{
	ByScore: "exact DESC, rank DESC, space_rank, id, kind, ext_rank",
	ByDate:  "changed DESC, space_rank, id, kind, ext_rank",
	ByName:  "lower(name), space_rank, id, kind, ext_rank",
}

// page reads the rows of one page, how many there are on all, and the best rank.
func (x *Index) page(ctx context.Context, hits statement, l *lookup) (page []row, total int, best float64, err error) {
	rows, err := x.db.QueryContext(ctx, hits.sql+`
		SELECT (SELECT count(*) FROM hits), (SELECT max(rank) FROM hits),
			doc, kind, id, space, path, space_rank, ext_rank, changed, rank,
			CASE WHEN id = ? COLLATE NOCASE OR replace(id, '/', '.') = ? COLLATE NOCASE THEN 2
				WHEN name = ? COLLATE NOCASE OR id LIKE ? ESCAPE '\' THEN 1 ELSE 0 END AS exact
		FROM hits JOIN items USING (doc)
		ORDER BY `+orders[l.Sort]+`
		LIMIT ? OFFSET ?`, slices.Concat(hits.args, []any{l.text, l.text, l.text, "%/" + escapeLike(l.text), l.Limit, l.Offset})...)
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r row
		if err := rows.Scan(&total, &best, &r.doc, &r.Kind, &r.ID, &r.Space, &r.Path, &r.spaceRank, &r.extRank, &r.changed, &r.rank, &r.exact); err != nil {
			return nil, 0, 0, err
		}
		r.OfRank(r.extRank)
		page = append(page, r)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, 0, err
	}
	if len(page) == 0 && l.Offset > 0 { // behind the end
		err = x.db.QueryRowContext(ctx, hits.sql+" SELECT count(*) FROM hits", hits.args...).Scan(&total)
	}
	return page, total, best, err
}

// escapeLike makes a text a pattern of LIKE that matches itself.
func escapeLike(text string) string {
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text)
}

// shadowing looks for the items of the same id in other spaces.
func (x *Index) shadowing(ctx context.Context, r row, hit *Hit) (err error) {
	rows, err := x.db.QueryContext(ctx,
		`SELECT space, (space_rank, ext_rank) > (?, ?) FROM items
		WHERE kind = ? AND id = ? AND doc <> ? ORDER BY space_rank, ext_rank`,
		r.spaceRank, r.extRank, r.Kind, r.ID, r.doc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var space item.Space
		var below bool
		if err := rows.Scan(&space, &below); err != nil {
			return err
		}
		switch {
		case below:
			hit.Shadows = append(hit.Shadows, space)
		case hit.ShadowedBy == "":
			hit.ShadowedBy = space
		}
	}
	return rows.Err()
}

// maxHinted bounds for how many words of a query that found nothing it is looked
// whether they occur.
const maxHinted = 8

// hint says what to try when nothing was found: which of the words occur nowhere. It
// looks no further than the query did.
func (x *Index) hint(ctx context.Context, l *lookup) (string, error) {
	terms := l.terms()
	var nowhere []string
	for _, term := range terms[:min(maxHinted, len(terms))] {
		alone := *l
		alone.parts, alone.filters = []part{{node: term}}, nil
		hits, err := x.ranking(ctx, &alone)
		if err != nil {
			return "", err
		}
		var one bool
		if err := x.db.QueryRowContext(ctx, hits.sql+" SELECT EXISTS (SELECT 1 FROM hits)", hits.args...).Scan(&one); err != nil {
			return "", err
		}
		if !one {
			nowhere = append(nowhere, term.String())
		}
	}
	switch {
	case len(nowhere) > 0:
		return fmt.Sprintf("No item here has: %s. Try another word, the beginning of one with *, or fuzzy.", strings.Join(nowhere, ", ")), nil
	case len(terms) > 1:
		return "No item here has all of it. Try OR between the words, or fewer.", nil
	}
	return "", nil
}
