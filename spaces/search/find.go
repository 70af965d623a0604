package search

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// weights are those of the columns of the words table, in their order: title,
// name, description, category, body.
const weights = "3.0, 3.0, 2.0, 1.5, 1.0"

// Length of a preview: FTS5 counts words around a match, a listing characters
// from the beginning.
const (
	previewWords = "32"
	previewRunes = "200"
)

// found is a hit with its row.
type found struct {
	Hit
	doc                int64
	spaceRank, extRank int
	rank               float64 // higher is better
	exact              int     // 2: the query is its id; 1: its name
}

// find answers a query from the tables as they are. No terms match everything.
func (x *Index) find(ctx context.Context, q Query, terms []term, within scope) (Page, error) {
	page := Page{Results: []Hit{}, Query: q.Text, Scope: q.Scope, Limit: q.Limit, Offset: q.Offset}
	hits := ranking(terms, within)
	var best sql.NullFloat64
	if err := x.db.QueryRowContext(ctx, hits.sql+" SELECT count(*), max(rank) FROM hits", hits.args...).
		Scan(&page.Total, &best); err != nil {
		return page, err
	}
	rows, err := x.page(ctx, hits, q)
	if err != nil {
		return page, err
	}
	for _, row := range rows {
		row.Score = 1
		if best.Float64 > 0 && row.exact == 0 {
			row.Score = math.Round(row.rank/best.Float64*1e4) / 1e4
		}
		if err := x.complete(ctx, &row, terms); err != nil {
			return page, err
		}
		page.Results = append(page.Results, row.Hit)
	}
	return page, nil
}

// statement is SQL with its arguments.
type statement struct {
	sql  string
	args []any
}

// ranking is a WITH clause for the documents that match, with their rank. The
// ranking function works only where the words table is read, so its result is
// kept in a table of its own.
func ranking(terms []term, within scope) statement {
	const hits = "WITH hits AS MATERIALIZED ("
	s := statement{sql: hits + "SELECT items.doc AS doc, 0.0 AS rank FROM items WHERE true"}
	if len(terms) > 0 {
		// bm25 is lower for better matches.
		s.sql = hits + "SELECT items.doc AS doc, -bm25(words, " + weights + ") AS rank" +
			" FROM words JOIN items ON items.doc = words.rowid WHERE words MATCH ?"
		s.args = append(s.args, matchExpression(terms))
	}
	if !within.threads {
		s.sql += " AND NOT (items.kind = ? AND items.id GLOB ?)"
		s.args = append(s.args, item.Knowledge, item.ThreadRecords+"/*")
	}
	if within.kind != "" {
		s.sql += " AND items.kind = ?"
		s.args = append(s.args, within.kind)
	}
	if len(within.globs) > 0 {
		alternatives := make([]string, len(within.globs))
		for i, glob := range within.globs {
			alternatives[i] = "replace(items.id, '/', '.') GLOB ?"
			s.args = append(s.args, glob)
		}
		s.sql += " AND (" + strings.Join(alternatives, " OR ") + ")"
	}
	s.sql += ")"
	return s
}

// page reads the rows of one page.
func (x *Index) page(ctx context.Context, hits statement, q Query) (page []found, err error) {
	exact := strings.Trim(strings.TrimSpace(q.Text), `"`)
	rows, err := x.db.QueryContext(ctx, hits.sql+`
		SELECT doc, kind, id, space, space_rank, ext_rank, name, description, category, rank,
			CASE WHEN id = ? COLLATE NOCASE OR replace(id, '/', '.') = ? COLLATE NOCASE THEN 2
				WHEN name = ? COLLATE NOCASE OR id LIKE ? ESCAPE '\' THEN 1 ELSE 0 END AS exact
		FROM hits JOIN items USING (doc)
		ORDER BY exact DESC, rank DESC, space_rank, id, kind, ext_rank
		LIMIT ? OFFSET ?`, slices.Concat(hits.args, []any{exact, exact, exact, "%/" + escapeLike(exact), q.Limit, q.Offset})...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var f found
		if err := rows.Scan(&f.doc, &f.Type, &f.ID, &f.Source, &f.spaceRank, &f.extRank,
			&f.Name, &f.Description, &f.Category, &f.rank, &f.exact); err != nil {
			return nil, err
		}
		page = append(page, f)
	}
	return page, rows.Err()
}

// escapeLike makes a text a pattern of LIKE that matches itself.
func escapeLike(text string) string {
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text)
}

// complete adds what is looked up for each hit of a page only: the preview, and
// the items of the same id in other spaces.
func (x *Index) complete(ctx context.Context, f *found, terms []term) error {
	preview := statement{"SELECT substr(body, 1, " + previewRunes + ") FROM words WHERE rowid = ?", []any{f.doc}}
	if len(terms) > 0 {
		preview = statement{
			"SELECT snippet(words, 4, '', '', '…', " + previewWords + ") FROM words WHERE words MATCH ? AND rowid = ?",
			[]any{matchExpression(terms), f.doc},
		}
	}
	err := x.db.QueryRowContext(ctx, preview.sql, preview.args...).Scan(&f.Preview)
	if err != nil && !errors.Is(err, sql.ErrNoRows) { // another process may have removed it meanwhile
		return err
	}
	f.Preview = strings.Join(strings.Fields(f.Preview), " ")
	return x.shadowing(ctx, f)
}

func (x *Index) shadowing(ctx context.Context, f *found) (err error) {
	rows, err := x.db.QueryContext(ctx,
		`SELECT space, (space_rank, ext_rank) > (?, ?) FROM items
		WHERE kind = ? AND id = ? AND doc <> ? ORDER BY space_rank, ext_rank`,
		f.spaceRank, f.extRank, f.Type, f.ID, f.doc)
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
			f.Shadows = append(f.Shadows, space)
		case f.ShadowedBy == "":
			f.ShadowedBy = space
		}
	}
	return rows.Err()
}
