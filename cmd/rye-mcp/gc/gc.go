// Package gc sets how often the garbage collector runs, before packages of other
// modules are initialized: Go initializes the packages that are ready in the order
// of their import paths, and this one imports next to nothing. Programs import it
// for that effect alone.
package gc

import (
	"os"
	"runtime/debug"
	"time"
)

// percent is the GOGC of every process that is not told another, as those of
// threads are. With half as many collections an answer comes sooner, and the few
// MB that this takes are of servers and commands, of which there are few. What the
// packages of this program set up takes so little that the first collection comes
// after the first answers.
const percent = 200

// A thread starts with a GOGC under which its first collection comes at 12 MB
// (orchestrator/spawn), and the next ones too: two turns take half of that, so a short
// thread ends without one. One that lives for so long waits for its model most of the
// time, and many do so at once: it gives back what its start has left, and keeps its
// heap smaller from then on. While a model takes its time the loop gives memory back.
const (
	settleAfter    = 3 * time.Second
	settledPercent = 100
)

//nolint:gochecknoinits // there is no other moment before those of other modules
func init() {
	switch {
	case isThread(os.Args):
		time.AfterFunc(settleAfter, settle)
	case os.Getenv("GOGC") == "":
		debug.SetGCPercent(percent)
	}
}

// isThread reports whether these are the arguments of a thread's process
// (orchestrator/spawn, which this package is too early to import).
func isThread(args []string) bool {
	return len(args) > 3 && args[1] == "thread" && args[2] == "run" && args[3] == "--pre-registered"
}

func settle() {
	debug.SetGCPercent(settledPercent)
	debug.FreeOSMemory()
}
