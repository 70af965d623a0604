// Package link connects to a PostgreSQL server. It imports next to nothing, so that a process
// can begin to connect before most of its packages are initialized.
package link

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Link is a pool of connections that see the schema of a project.
type Link struct {
	schema string
	pool   *pgxpool.Pool
	taken  atomic.Bool
}

// warmSQL looks up tables, each by itself so that no join is planned, and has the language of
// the functions loaded that the rules of their columns call.
const warmSQL = `SELECT FROM threads LIMIT 0; SELECT FROM budgets LIMIT 0; SELECT FROM record_files LIMIT 0;
	SELECT is_object('{}'), is_json('{}'), json_text('{}', '')`

// Begin makes a connection that sees the schema of a project, and has the server look up what a
// thread's process begins with: most that such a process asks of it is the tables' columns and
// indexes. A failure is told to those who use the pool.
func Begin(ctx context.Context, opts Options, project string) (*Link, error) {
	config, err := opts.Config()
	if err != nil {
		return nil, err
	}
	l := &Link{schema: SchemaOf(project)}
	if l.pool, err = Pool(ctx, config, l.schema, &Sessions{}); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, opts.WithDefaults().Timeout)
	defer stop()
	_, _ = l.pool.Exec(ctx, warmSQL, pgx.QueryExecModeSimpleProtocol)
	return l, nil
}

// Take returns the pool, once, to a caller that wants one for its schema; else nil.
func (l *Link) Take(schema string) *pgxpool.Pool {
	if l == nil || l.schema != schema || l.taken.Swap(true) {
		return nil
	}
	return l.pool
}

// Close closes the connections, unless somebody has taken them.
func (l *Link) Close() {
	if l != nil && !l.taken.Swap(true) {
		l.pool.Close()
	}
}

// Pool returns a pool whose connections see one schema. It connects when it is used.
func Pool(ctx context.Context, config *pgxpool.Config, schema string, sessions *Sessions) (*pgxpool.Pool, error) {
	config = config.Copy()
	config.ConnConfig.RuntimeParams["search_path"] = schema
	sessions.Prepare(&config.ConnConfig.Config)
	return pgxpool.NewWithConfig(ctx, config)
}

// SchemaOf returns the schema of a project: rye_, what of its name can stand in one, and
// the beginning of the SHA-256 of the name.
func SchemaOf(project string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, project)
	sum := sha256.Sum256([]byte(project))
	const room = 63 - len("rye_") - len("_") - 12 // of an identifier
	return "rye_" + slug[max(0, len(slug)-room):] + "_" + hex.EncodeToString(sum[:6])
}
