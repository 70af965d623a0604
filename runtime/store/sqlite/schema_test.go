package sqlite

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
)

var updateSchemas = flag.Bool("update", false, "rewrite the schemas of new databases")

// The schema of a new database is what the migrations make: the same statements in the same
// order, and the same rows.
func TestSchemaOfNewDatabases(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"registry", "ledger"} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			migrated := &former{TB: t, folder: folder, dir: t.TempDir(), version: 1 << 30}
			migrated.open()
			want := migrated.schema()
			golden := filepath.Join("schemas", folder+".sql")
			if *updateSchemas {
				migrated.noError(os.WriteFile(golden, []byte(want), 0o600))
				return // the schema in this program is the old one
			}
			got, err := os.ReadFile(golden)
			migrated.noError(err)
			if string(got) != want {
				t.Fatalf("%s is not what the migrations make; run: go test ./runtime/store/sqlite -run TestSchemaOfNewDatabases -update", golden)
			}
			made := &former{TB: t, folder: folder, dir: t.TempDir()}
			path := filepath.Join(made.dir, "made.db")
			made.noError(os.WriteFile(path, nil, 0o600))
			made.db = sharedfile.Pool(path, 1)
			t.Cleanup(func() { made.noError(made.db.Close()) })
			made.exec("CREATE TABLE place (mark TEXT NOT NULL) STRICT") // stands there before all others
			if isNew, err := isEmpty(t.Context(), made.db); err != nil || !isNew {
				t.Errorf("with its mark alone it is new: %t, %v", isNew, err)
			}
			made.noError(migrate(t.Context(), made.db, made.dir, folder))
			made.exec("DROP TABLE place")
			if again := made.schema(); again != want {
				t.Errorf("a new database has\n%s\nand not\n%s", again, want)
			}
			if current, err := isCurrent(t.Context(), made.db, folder); err != nil || !current {
				t.Errorf("it is current: %t, %v", current, err)
			}
		})
	}
}

// schema is all of a database as the statements that make it, its rows included.
func (f *former) schema() string {
	f.Helper()
	var statements, tables []string
	rows, err := f.db.QueryContext(f.Context(), "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid")
	f.noError(err)
	defer func() { _ = rows.Close() }() // read to its end, it is closed
	for rows.Next() {
		var kind, name, statement string
		f.noError(rows.Scan(&kind, &name, &statement))
		if kind == "table" && name != "goose_db_version" {
			tables = append(tables, name)
		}
		for strings.Contains(statement, "\n\n") {
			statement = strings.ReplaceAll(statement, "\n\n", "\n")
		}
		statements = append(statements, statement)
	}
	f.noError(rows.Err())
	for _, table := range tables {
		var n int
		f.noError(f.db.QueryRowContext(f.Context(), "SELECT count(*) FROM "+table).Scan(&n))
		if n > 0 {
			f.Fatalf("migrations put rows into a new %s, which its schema has no statement for", table)
		}
	}
	versions, err := f.db.QueryContext(f.Context(), "SELECT version_id, is_applied FROM goose_db_version ORDER BY id")
	f.noError(err)
	defer func() { _ = versions.Close() }()
	for versions.Next() {
		var version, applied int
		f.noError(versions.Scan(&version, &applied))
		statements = append(statements, fmt.Sprintf("INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, %d)", version, applied))
	}
	f.noError(versions.Err())
	return strings.Join(statements, endOfStatement) + ";\n"
}
