package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestCreatedAsMigrated: a new schema is what the migrations make of an old one, and no
// migration has a way back, which would be taken at once.
func TestCreatedAsMigrated(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := pgtest.Shared(t)
	for _, t1 := range []tables{fleet, project("p", "p")} {
		var dumps []string
		for _, how := range []func(context.Context, *pgx.ConnConfig) error{
			t1.update,
			func(ctx context.Context, config *pgx.ConnConfig) error {
				conn, err := pgx.ConnectConfig(ctx, config)
				if err != nil {
					return err
				}
				return errors.Join(t1.create(ctx, conn), conn.Close(ctx))
			},
		} {
			config, err := pgx.ParseConfig(c.Database(t))
			if err != nil {
				t.Fatal(err)
			}
			config.RuntimeParams["search_path"] = t1.schema
			config.DefaultQueryExecMode = pgx.QueryExecModeExec
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			_, err = conn.Exec(t.Context(), "CREATE SCHEMA "+t1.schema)
			if err = errors.Join(err, conn.Close(t.Context())); err != nil {
				t.Fatal(err)
			}
			if err := how(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			dumps = append(dumps, dumped(t, c, config, t1.schema))
		}
		if dumps[0] != dumps[1] {
			t.Errorf("%s: migrated:\n%s\ncreated:\n%s", t1.folder, dumps[0], dumps[1])
		}
		files, _ := fs.Glob(migrations, t1.folder+"/*.sql")
		for n, name := range files {
			text, err := migrations.ReadFile(name)
			if err != nil || strings.Contains(string(text), "+goose Down") || strings.Contains(string(text), "NO TRANSACTION") {
				t.Errorf("%s: it goes back, or is no transaction (%v)", name, err)
			}
			if want := fmt.Sprintf("%s/%04d_", t1.folder, n+1); !strings.HasPrefix(name, want) {
				t.Errorf("%s: the next number is %s", name, want)
			}
		}
	}
}

// dumped is a schema, and the versions that it says it has, as text.
func dumped(t *testing.T, c *pgtest.Cluster, config *pgx.ConnConfig, schema string) string {
	t.Helper()
	var all strings.Builder
	for _, what := range [][]string{{"--schema-only"}, {"--data-only", "--column-inserts"}} {
		args := slices.Concat(what, []string{"-h", config.Host, "-U", config.User, "-d", config.Database, "-n", schema})
		out, err := c.Program(t, "pg_dump", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		all.Write(out)
	}
	text := regexp.MustCompile(`'\d{4}-\d\d-\d\d [\d:.]+'`).ReplaceAllString(all.String(), "NOW")
	return regexp.MustCompile(`(?m)^\\(un)?restrict .*$`).ReplaceAllString(text, "")
}
