// Package gc sets how often the garbage collector runs, before packages of other
// modules are initialized: Go initializes the packages that are ready in the order
// of their import paths, and this one imports next to nothing. Programs import it
// for that effect alone.
package gc

import (
	"os"
	"runtime/debug"
)

// percent is the GOGC of every process that is not told another, as those of
// threads are. With half as many collections an answer comes sooner, and the few
// MB that this takes are of servers and commands, of which there are few. What the
// packages of this program set up takes so little that the first collection comes
// after the first answers.
const percent = 200

//nolint:gochecknoinits // there is no other moment before those of other modules
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
