package postgres

import (
	"context"
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
	mark := "NULL"
	if from != "" {
		mark = "'" + strings.ReplaceAll(movingMark+from, "'", "''") + "'"
	}
	_, err := s.pool.Exec(ctx, fmt.Sprintf("COMMENT ON SCHEMA %s IS %s", pgx.Identifier{link.SchemaOf(name)}.Sanitize(), mark), pgx.QueryExecModeExec)
	return s.explain(err)
}
