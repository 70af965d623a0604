package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Dialect says in which words an engine is told what the two have no common words for.
type Dialect string

// The dialects there are.
const (
	SQLite     Dialect = "sqlite"
	PostgreSQL Dialect = "postgres"
)

// in is one of two texts.
func (d Dialect) in(sqlite, postgres string) string {
	if d == PostgreSQL {
		return postgres
	}
	return sqlite
}

// deferReferences lets rows of one transaction come in any order.
func (d Dialect) deferReferences(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, d.in("PRAGMA defer_foreign_keys = ON", "SET CONSTRAINTS ALL DEFERRED"))
	return err
}

// attempt runs a statement after whose failure the transaction is to go on. In
// PostgreSQL a failure ends it, unless there is a place to go back to.
func (d Dialect) attempt(ctx context.Context, tx *sql.Tx, f func() error) error {
	if d != PostgreSQL {
		return f()
	}
	if _, err := tx.ExecContext(ctx, "SAVEPOINT attempt"); err != nil {
		return err
	}
	failed := f()
	if failed != nil {
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT attempt"); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "RELEASE SAVEPOINT attempt"); err != nil {
		return err
	}
	return failed
}

// untilCommit ends a SELECT whose rows are to stay as they are until the transaction
// commits. A Write has the database alone but for Updates, see [Database]. In SQLite they
// wait as well, and PostgreSQL has them wait for the row.
func (d Dialect) untilCommit() string { return d.in("", " FOR NO KEY UPDATE") }

// sortsUnions reports whether an engine reads all of a UNION ALL before it sorts it, although
// each part could be read in that order. Each part must then end by itself.
func (d Dialect) sortsUnions() bool { return d == PostgreSQL }

// byName is how rows are ordered by their names, without regard to the case of ASCII: the
// column in a comparison, the parameter that it is compared with, and the column in
// ORDER BY. They are those of the index threads_name. In a comparison a collation on the left
// would keep SQLite from looking up both columns in the index.
func (d Dialect) byName() (column, place, sorted string) {
	if d == PostgreSQL {
		return `lower(name COLLATE "C")`, `lower(CAST(? AS TEXT) COLLATE "C")`, `lower(name COLLATE "C")`
	}
	return "name", "? COLLATE NOCASE", "name COLLATE NOCASE"
}

// like is the condition that a column has a pattern, without regard to the case of ASCII.
func (d Dialect) like(column string) string {
	return column + d.in(" LIKE", " ILIKE") + ` ? ESCAPE '\'`
}

// forkedFrom is the thread that a row was forked from, as the index threads_forks has it.
func (d Dialect) forkedFrom() string {
	return d.in("json_extract(metadata, '$."+thread.MetadataForkedFrom+"')", "json_text(metadata, '"+thread.MetadataForkedFrom+"')")
}

// isImported is the condition that a thread was taken in from a recording, as
// [thread.IsImported] decides it.
func (d Dialect) isImported() string {
	return "metadata <> '{}' AND " + d.in("json_type(metadata, '$."+thread.MetadataImported+"') IS NOT NULL", "is_imported(metadata)")
}

// hasMember is the condition that metadata has a value at a path of names: for a text,
// what it says or how another value is written; null is as good as nothing, and an empty
// object is any object. The names were checked ([thread.CheckMetadataKey]), so that none
// ends the path.
func (d Dialect) hasMember(path []string, value any) (condition string, args []any) {
	if d == PostgreSQL {
		return postgresMember(path, value)
	}
	at := "$"
	for _, name := range path {
		at += `."` + name + `"`
	}
	switch value := value.(type) {
	case nil:
		return "coalesce(json_type(metadata, ?), 'null') = 'null'", []any{at}
	case map[string]any:
		return "json_type(metadata, ?) = 'object'", []any{at}
	case string:
		return "CASE json_type(metadata, ?) WHEN 'text' THEN metadata ->> ? ELSE metadata -> ? END = ?", []any{at, at, at, value}
	case json.Number:
		return "json_type(metadata, ?) IN ('integer', 'real') AND metadata ->> ? = CAST(? AS NUMERIC)", []any{at, at, value.String()}
	case bool:
		return "json_type(metadata, ?) = ?", []any{at, fmt.Sprint(value)}
	default:
		return "json_type(metadata, ?) = 'array' AND metadata -> ? = ?", []any{at, at, asKept(value)}
	}
}

// plainNumber is a number that PostgreSQL can compare with others; it refuses longer ones.
const plainNumber = `^-?[0-9]{1,40}([.][0-9]{1,40})?([eE][+-]?[0-9]{1,3})?$`

// postgresMember is hasMember for PostgreSQL. It takes no text out of JSON that it can do
// without: what has \u0000 in it cannot become one. CASE decides before it converts, which
// AND need not.
func postgresMember(path []string, value any) (condition string, args []any) {
	at := `{"` + strings.Join(path, `","`) + `"}`
	const member = "(CAST(metadata AS JSON) #> CAST(? AS TEXT[]))"
	switch value := value.(type) {
	case nil:
		return "coalesce(json_typeof" + member + ", 'null') = 'null'", []any{at}
	case map[string]any:
		return "json_typeof" + member + " = 'object'", []any{at}
	case string:
		return "CASE json_typeof" + member + " WHEN 'string' THEN CAST(" + member + " AS TEXT) = ? ELSE CAST(" + member + " AS TEXT) = ? END",
			[]any{at, at, asKept(value), at, value}
	case json.Number:
		if plain, err := regexp.MatchString(plainNumber, value.String()); !plain || err != nil {
			return "CAST(" + member + " AS TEXT) = ?", []any{at, value.String()}
		}
		return "CASE WHEN json_typeof" + member + " = 'number' AND CAST(" + member + " AS TEXT) ~ '" + plainNumber + "' THEN CAST(CAST(" + member +
			" AS TEXT) AS NUMERIC) = CAST(? AS NUMERIC) ELSE false END", []any{at, at, at, value.String()}
	case bool:
		return "CAST(" + member + " AS TEXT) = ?", []any{at, fmt.Sprint(value)}
	default:
		return "CAST(" + member + " AS TEXT) = ?", []any{at, asKept(value)}
	}
}

// scope is what stands for the scope of a set: PostgreSQL keeps no NUL in a text, which
// divides one.
func (d Dialect) scope(scope string) string {
	return strings.ReplaceAll(scope, "\x00", d.in("\x00", "\x1f"))
}
