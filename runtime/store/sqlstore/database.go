package sqlstore

import (
	"context"
	"database/sql"
)

// Durability says what a commit survives.
type Durability int

const (
	// Durable is for a commit that is on disk when it returns.
	Durable Durability = iota
	// Relaxed is for a commit that survives the end of every process, but may be lost
	// with the power of the machine that has the data. It is several times cheaper. A
	// durable commit carries every earlier one along. Its loss does no harm: the next commit
	// replaces it, or it is done again.
	Relaxed
	// Local is Relaxed for what concerns a process that ends with the power, and so only where the
	// data are on the machine of the processes. Where they are not it is Durable: the
	// process goes on, and relies on what it has written.
	Local
)

// Database is one of the two databases of a store, the registry or the ledger, as an
// engine keeps it. It is safe for concurrent use.
//
// A function that is handed to it may be called again after it has failed, or after its
// transaction has, when the engine has found that another attempt can succeed. It sets
// what it gives out anew each time. It uses the context that it is given, which may be
// bounded, and nothing of the database after it has returned.
type Database interface {
	// Read runs f, each statement of which sees what was committed before it.
	Read(ctx context.Context, f func(context.Context, *sql.DB) error) error
	// Recall returns what read returns for a question, or has returned when nothing has
	// been committed since. All who get an answer share what it points to, which stays
	// as it is. No error is remembered, sql.ErrNoRows included. An engine that remembers
	// nothing calls read each time.
	Recall(ctx context.Context, q Question, read func(context.Context, *sql.Conn) (any, error)) (any, error)
	// Write runs f in a transaction, which an error of f takes back. No other Write, of
	// whichever process, runs beside it: what f reads of the database holds until it
	// commits, but for rows that an Update changes. Waiting for the turn ends with ctx; a
	// transaction that has begun may not, so that its outcome is known.
	Write(ctx context.Context, level Durability, f func(context.Context, *sql.Tx) error) error
	// WriteFrom is Write for an f that runs a query of which no statement of f that comes
	// before it changes the answer. An engine may send it along with the beginning, so that
	// others do not wait for its round trip.
	WriteFrom(ctx context.Context, level Durability, first Statement, f func(context.Context, *sql.Tx) error) error
	// Update runs one statement as a transaction of its own and reports whether it has
	// changed a row. It need not wait for Writes of others: the conditions of the
	// statement hold for the row as it is changed, and it reads no other row.
	Update(ctx context.Context, level Durability, u Update) (changed bool, err error)
	// WriteAsIs is Write for callers that bring back what is missing: where Read, Write, Recall
	// and Update have lost rows brought back before they go on, it does not.
	WriteAsIs(ctx context.Context, level Durability, f func(context.Context, *sql.Tx) error) error
	// Restored records, in a transaction of WriteAsIs, that no rows are missing any more.
	Restored(ctx context.Context, tx *sql.Tx) error
	// BreaksRule reports whether err says that a row is not one that the schema allows:
	// that it fails a check, is there already, or refers to one that is not there.
	BreaksRule(err error) bool
}

// Question is a query with its one parameter, most often the id of a thread. The
// parameter of a query without one is empty.
type Question struct{ Query, Param string }

// Statement is a query that gives one row at most, with its parameters.
type Statement struct {
	Query string
	Args  []any
}

// Update is one statement that changes at most one row.
type Update struct {
	Query string
	Args  []any
	// Of is the question whose answer is about that row, and Change does to the answer
	// what the statement does to the row. An engine may remember the outcome in the place
	// of the answer that it has; other answers stay as they are. Nobody calls Change
	// with an answer of nil. An answer that was read late has the change already: to
	// change it again makes no difference.
	Of     Question
	Change func(answer any) any
}

// Sized is an answer that can be long. The size is in bytes.
type Sized interface{ Size() int }
