package sqlstore

// Dialect says in which words an engine is told what the two have no common words for.
type Dialect string

// The dialects there are.
const (
	SQLite     Dialect = "sqlite"
	PostgreSQL Dialect = "postgres"
)
