package postgres

import (
	"database/sql/driver"
	"io"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
)

// answer is what the server has answered to a query that was sent with the beginning of a
// transaction. QueryContext gives it out when the query is run.
type answer struct {
	query   string // as sqlstore has it
	args    []any
	columns []string
	rows    [][]driver.Value
}

var _ driver.Rows = (*answer)(nil)

// ask has a batch ask a query, whose answer the connection keeps.
func (c *conn) ask(batch *pgx.Batch, s sqlstore.Statement) error {
	args := make([]any, len(s.Args))
	for i, arg := range s.Args {
		value := driver.NamedValue{Ordinal: i + 1, Value: arg}
		if err := c.CheckNamedValue(&value); err != nil {
			return err
		}
		args[i] = value.Value
	}
	batch.Queue(c.texts.of(s.Query), args...).Query(func(rows pgx.Rows) error {
		if err := rows.Err(); err != nil { // it has no columns then
			return err
		}
		a := &answer{query: s.Query, args: args}
		for _, column := range rows.FieldDescriptions() {
			a.columns = append(a.columns, column.Name)
		}
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				return err
			}
			a.rows = append(a.rows, asDriven(values))
		}
		c.first = a
		return rows.Err()
	})
	return nil
}

// asDriven gives values the types that database/sql knows.
func asDriven(values []any) []driver.Value {
	driven := make([]driver.Value, len(values))
	for i, value := range values {
		switch value := value.(type) {
		case int16:
			driven[i] = int64(value)
		case int32:
			driven[i] = int64(value)
		case float32:
			driven[i] = float64(value)
		default:
			driven[i] = value
		}
	}
	return driven
}

// of reports whether the answer is one to a query.
func (a *answer) of(query string, args []driver.NamedValue) bool {
	return a.query == query && slices.EqualFunc(a.args, args, func(asked any, arg driver.NamedValue) bool {
		return reflect.DeepEqual(asked, arg.Value)
	})
}

// Columns implements [driver.Rows].
func (a *answer) Columns() []string { return a.columns }

// Close implements [driver.Rows].
func (a *answer) Close() error {
	a.rows = nil
	return nil
}

// Next implements [driver.Rows].
func (a *answer) Next(dest []driver.Value) error {
	if len(a.rows) == 0 {
		return io.EOF
	}
	copy(dest, a.rows[0])
	a.rows = a.rows[1:]
	return nil
}
