package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// Grants are the statements, with a semicolon between each two, by which the owner of a project's
// schema lets a role work in it. Tables that a later migration adds are granted with them.
func Grants(schema, role string) string {
	const statements = `GRANT USAGE ON SCHEMA rye, SCHEMA TO ROLE;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rye, SCHEMA TO ROLE;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA rye, SCHEMA TO ROLE;
ALTER DEFAULT PRIVILEGES IN SCHEMA rye, SCHEMA GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ROLE;
ALTER DEFAULT PRIVILEGES IN SCHEMA rye, SCHEMA GRANT USAGE ON SEQUENCES TO ROLE`
	return strings.NewReplacer("SCHEMA rye, SCHEMA", "SCHEMA rye, "+pgx.Identifier{schema}.Sanitize(),
		"TO ROLE", "TO "+pgx.Identifier{role}.Sanitize()).Replace(statements)
}
