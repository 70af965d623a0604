package sqlstore

import (
	"time"
)

// Store is what is the same of a [store.Store] whichever engine keeps the rows. An
// engine embeds it, and adds what only it can know: what is lost or damaged, how much
// room is taken, when somebody has committed. It is safe for concurrent use.
type Store struct {
	messages
	sets
	latest
	glancer
	census
	costs
	handoffs
	retries
	afterwards
	deletions
	sweeps

	registry Database
	ledger   Database
	dialect  Dialect
	now      func() time.Time
}

// New is the store in two databases of an engine, which speak a dialect. Now is the
// clock of the changes that are not given a time by the caller.
func New(registry, ledger Database, dialect Dialect, now func() time.Time) *Store {
	s := &Store{registry: registry, ledger: ledger, dialect: dialect, now: now}
	s.messages, s.handoffs, s.sets, s.latest, s.census = messages{registry}, handoffs{registry}, sets{s}, latest{registry}, census{registry}
	s.deletions, s.sweeps, s.afterwards = deletions{registry, ledger, dialect}, sweeps{registry}, afterwards{ledger, dialect}
	s.costs, s.glancer, s.retries = costs{registry, dialect}, glancer{registry, ledger}, retries{registry}
	return s
}
