package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/link"
)

// markSQL is the comment of the schema that a connection sees.
const markSQL = "coalesce(obj_description(to_regnamespace(quote_ident(current_schema())), 'pg_namespace'), '')"

// movingMark begins the comment of a schema whose threads are on their way to it. A comment
// needs no table, so that binaries of before need none either.
const movingMark = "rye: moving from "

// unfinished refuses a project that threads are being moved to.
func (s *Server) unfinished(mark string) error {
	if from, is := strings.CutPrefix(mark, movingMark); is && !s.opts.Moving {
		from, _, _ = strings.Cut(from, "\n") // where they come from; behind it, how far they are
		return &store.MovingError{From: from}
	}
	return nil
}

// Moving says from where threads are being moved to a project; empty: they are not.
func (s *Server) Moving(ctx context.Context, name string) (from string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	var mark string
	err = s.pool.QueryRow(ctx, "SELECT coalesce(obj_description(to_regnamespace($1), 'pg_namespace'), '')", link.SchemaOf(name)).Scan(&mark)
	if from, is := strings.CutPrefix(mark, movingMark); is {
		return from, nil
	}
	return "", s.explain(err)
}

// SetMoving notes from where threads are being moved to a project; empty: they are there.
func (s *Server) SetMoving(ctx context.Context, name, from string) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	mark := ""
	if from != "" {
		mark = movingMark + from
	}
	_, err := s.pool.Exec(ctx, comment(link.SchemaOf(name), mark), pgx.QueryExecModeExec)
	return s.explain(err)
}

// comment is the statement that gives a schema a comment; one of nothing is none.
func comment(schema, text string) string {
	return fmt.Sprintf("COMMENT ON SCHEMA %s IS '%s'", pgx.Identifier{schema}.Sanitize(), strings.ReplaceAll(text, "'", "''"))
}

// movedMark begins the comment of a schema that was put aside when its threads were moved.
const movedMark = "rye: moved to "

// notMoved refuses to make a schema anew whose threads were moved elsewhere.
func (s *Server) notMoved(ctx context.Context, conn *pgx.Conn, schema string) error {
	if s.opts.Moving {
		return nil
	}
	var kept, mark string
	err := conn.QueryRow(ctx, `SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_catalog.pg_namespace
		WHERE to_regnamespace($1) IS NULL AND starts_with(nspname, 'moved_') AND right(nspname, 12) = right($1, 12)
			AND starts_with(obj_description(oid, 'pg_namespace'), $2) ORDER BY nspname DESC LIMIT 1`, schema, movedMark).Scan(&kept, &mark)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return &store.MovedError{To: strings.TrimPrefix(mark, movedMark), Kept: kept}
}
