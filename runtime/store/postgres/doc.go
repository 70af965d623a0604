// Package postgres keeps the registry and the ledger of threads in PostgreSQL, for teams
// whose threads run on more than one machine.
//
//	server, err := postgres.Connect(ctx, postgres.Options{URL: "postgres://user@host/database"})
//	store, err := server.Project(ctx, "github.com/acme/shop")
//
// # What lies where
//
// Schema rye has what all projects share: the list of them, and what workers and River
// keep. Each project has a schema of its own with the tables that the SQLite store has,
// under the same names, so that ids and request keys are a project's by construction.
// Connections have the project's schema as search_path and no other.
//
// # Schemas
//
// The first process that opens a database or a project makes its tables, and the first of a
// newer version brings them up to date, one at a time (an advisory lock). A schema of a
// newer binary is refused with [store.ErrTooNew].
//
// # Roles
//
// Two roles are enough. The owner makes and migrates schemas:
//
//	CREATE ROLE rye_owner LOGIN; GRANT CREATE ON DATABASE rye TO rye_owner;
//
// Another works in those that are there, and cannot change a table. The owner grants it
// what the guide rye/guides/postgres says ("Roles"), for each project once.
//
// The schema of a project stands in rye.projects. Both roles see all threads of a project:
// a role that may connect decides what the workers run.
//
// Text sorts by bytes (COLLATE "C"), whatever the collation of the database.
package postgres
