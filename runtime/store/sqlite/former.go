package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Bounds of what is remembered: of a name or a request key, and of threads.
const (
	maxRemembered = 1 << 10
	maxRows       = 1 << 18
)

// Remember reads what only the registry in dir knows of threads, without making it
// part of a store. It may be anybody's file: nothing of it is executed, written or
// believed beyond these words.
func Remember(ctx context.Context, dir string) (known map[thread.ID]store.Remembered, err error) {
	path := filepath.Join(dir, registryFile)
	if info, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	db := sharedfile.Pool(path, 1, "query_only(1)", "trusted_schema(0)")
	defer func() { err = errors.Join(err, db.Close()) }()
	known, err = remember(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("read the names of threads in %s: %w", path, explain(path, err))
	}
	return known, nil
}

func remember(ctx context.Context, db *sql.DB) (known map[thread.ID]store.Remembered, err error) {
	var tables int // a view could say anything, for ever
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'threads' AND sql NOT LIKE '%VIRTUAL%'").Scan(&tables)
	if err != nil || tables == 0 {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT substr(thread_id, 1, ?1), substr(name, 1, ?1), substr(coalesce(request_key, ''), 1, ?1)
		FROM threads LIMIT ?2`, maxRemembered, maxRows)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	known = map[thread.ID]store.Remembered{}
	for rows.Next() {
		var id thread.ID
		var r store.Remembered
		if err := rows.Scan(&id, &r.Name, &r.RequestKey); err != nil {
			return nil, err
		}
		known[id] = r
	}
	return known, rows.Err()
}
