package sqlstore

import (
	"context"
	"database/sql"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Statements whose plans are looked at from where an engine can be imported.
const (
	WithSubtree        = withSubtree
	AboveThreads       = aboveThreads
	MayRun             = mayRun
	LatestInTreeSQL    = latestInTreeSQL
	LatestCompletedSQL = latestCompletedSQL
	LatestSQL          = latestSQL
	StatsSQL           = statsSQL
	KnownSQL           = knownSQL
	ActiveSQL          = activeSQL
	QueueLoadSQL       = queueLoadSQL
	NextChildSQL       = nextChildSQL
	NextOtherSQL       = nextOtherSQL
	EnqueueSQL         = enqueueSQL
	AdmitSQL           = admitSQL
	NextPosition       = nextPosition
	Columns            = columns
	Few                = few
)

// Registry and Ledger are the databases of a store.
func (s *Store) Registry() Database { return s.registry }
func (s *Store) Ledger() Database   { return s.ledger }

// NextCursor is the cursor behind a row in the list of a filter, and the column that the
// list is ordered by.
func NextCursor(f store.Filter, last thread.Record) (cursor, column string, err error) {
	l, err := newListing(SQLite, f, 1)
	if err != nil {
		return "", "", err
	}
	return l.cursor(l.positionOf(last)), l.order.column, nil
}

// PlanList is the statement by which a page of a filter is read.
func PlanList(ctx context.Context, db *sql.DB, f store.Filter, limit int) (query string, args []any, err error) {
	l, err := newListing(SQLite, f, limit)
	if err != nil {
		return "", nil, err
	}
	if _, err := l.bound(ctx, db, store.MaxScanned); err != nil {
		return "", nil, err
	}
	return l.plan(ctx, db)
}

// CostsSQL is the statement of costs by directive.
func CostsSQL(d Dialect) string { return costs{dialect: d}.query("directive") }
