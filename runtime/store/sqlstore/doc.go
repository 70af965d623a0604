// Package sqlstore is what every store.Store that keeps its rows in a SQL database
// does: the flows of registry and ledger, and the only SQL about threads. It runs on two
// databases of an engine, each a [Database]. The engines are beside it: sqlite keeps
// files that the processes of one machine share, postgres a server for many machines.
//
// # Portable statements
//
// A statement is written once, in words that both engines have; a test of this package
// lists what they are not. A bare ? is the parameter behind the highest before it, as
// SQLite numbers them. INDEXED BY holds for SQLite alone. Lists are one parameter, JSON that
// json_each reads; an engine without that has a function of that name with the columns
// key and value, of text. The few statements that no words can be found for are
// methods of [Dialect], with the texts of both beside each other.
//
// Booleans are the integers 0 and 1, amounts micro-dollars, times milliseconds since
// 1970, all in columns of 64 bits. JSON is kept as text.
//
// # Writers
//
// Every Write of one database has it alone, see [Database]. That orders what a guarded
// statement cannot see: places in the queue, slots, ids, numbers of news, running totals of
// budgets. A flow can therefore rely on all that it reads in its Write, but for the values
// that an Update changes. There are three. RecordCost changes what a running thread has
// cost, by which no flow decides. Pledge and Report change what an active budget has spent:
// a flow that writes by that reads it with the statement that changes it, or keeps the row
// as it is (Dialect.untilCommit).
//
// A Write asks again for what was read outside of it, unless that need not hold: a
// candidate is registered if its id is still free, the next of the queue is admitted if
// it is still queued and a slot is free, a run takes a budget from the run that it has
// read, and from no other. The two databases have no common transaction; their order is
// said where it matters (Restore, Runner.takeBudget).
package sqlstore
