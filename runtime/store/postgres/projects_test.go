package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
)

// projects are those of one database, which tests have one after the other: to make the
// tables of a project takes longer than most of what is tested with them. Tests that run at
// once have different ones, so that what belongs to one and not to another shows.
type projects struct {
	server *postgres.Server

	mu   sync.Mutex
	made int
	free []*postgres.Store
}

func newProjects(t *testing.T, s *postgres.Server) *projects {
	p := &projects{server: s}
	t.Cleanup(func() {
		for _, st := range p.free {
			if err := st.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	})
	return p
}

// open returns an empty project that is the test's alone.
func (p *projects) open(t *testing.T) store.Store {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		p.made++
		st, err := p.server.Project(t.Context(), fmt.Sprintf("project %d", p.made))
		if err != nil {
			t.Fatal(err)
		}
		p.free = append(p.free, st)
	}
	last := len(p.free) - 1
	st := p.free[last]
	p.free = p.free[:last]
	t.Cleanup(func() { p.leave(t, st) })
	return st
}

// leave empties a project for the next test, unless this one has closed it or failed: what
// it was about may still go on.
func (p *projects) leave(t *testing.T, st *postgres.Store) {
	t.Helper()
	if err := empty(context.WithoutCancel(t.Context()), st); err != nil || t.Failed() {
		if err := st.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, st)
}

// empty deletes all rows of a project, without the triggers and rules that watch over them.
func empty(ctx context.Context, st *postgres.Store) error {
	const tables = `SELECT string_agg(format('DELETE FROM %I', tablename), '; ') FROM pg_tables
		WHERE schemaname = $1 AND tablename NOT IN ('goose_db_version', 'locks')`
	return pgx.BeginFunc(ctx, st.Pool(), func(tx pgx.Tx) error {
		var all string
		if err := tx.QueryRow(ctx, tables, st.Schema()).Scan(&all); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "SET LOCAL session_replication_role = replica; "+all, pgx.QueryExecModeSimpleProtocol)
		return err
	})
}
