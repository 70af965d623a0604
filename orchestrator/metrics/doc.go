// Package metrics tells Prometheus how the threads of the projects of a server are.
//
// The threads run in processes of their own, so nothing is counted where it happens:
// each scrape looks at the rows that were used since the one before, and what that costs
// does not grow with the threads that have ended. Gauges are of the moment. Counters
// begin at 0 with the server and never go back, whatever is deleted meanwhile. A thread that
// is deleted between two scrapes counts as started and ended; its use since the first is
// in no counter. None of them has what came to pass while no server ran. Two servers of one
// project both tell of its threads.
//
// Names that others choose (directives, models, tools, codes) are values of labels: each
// label has so many, and what comes later shares the value "_other".
package metrics
