// Package gc sets how often the garbage collector runs, before packages of other
// modules are initialized: Go initializes the packages that are ready in the order
// of their import paths, and this one imports next to nothing. Programs import it
// for that effect alone.
package gc

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// percent is the GOGC of every process that is not told another, as those of
// threads are. With half as many collections an answer comes sooner, and the few
// MB that this takes are of servers and commands, of which there are few. The
// packages of this program set up so little that the first collection comes after
// the first answers.
const percent = 200

// A thread starts with a GOGC under which its first collection comes at 12 MB
// (orchestrator/spawn), and so do the next ones: two turns take half of that, so a short
// thread ends without one. One whose conversation takes more than that collects when half
// as much has come to it again. One that lives for so long waits for its model most of
// the time, and many do so at once: it gives back what its start has left, and keeps its
// heap smaller from then on. While a model takes its time the loop gives memory back.
const (
	firstPercent   = 300      // as orchestrator/spawn sets it
	firstHeap      = 12 << 20 // bytes
	settleAfter    = 3 * time.Second
	settledPercent = 100
	leastPercent   = 50
)

//nolint:gochecknoinits // there is no other moment before those of other modules
func init() {
	switch {
	case isThread(os.Args):
		k := newKeeper(firstPercent)
		k.watch()
		time.AfterFunc(settleAfter, k.settle)
	case os.Getenv("GOGC") == "":
		debug.SetGCPercent(percent)
	}
}

// isThread reports whether these are the arguments of a thread's process
// (orchestrator/spawn, which this package is too early to import).
func isThread(args []string) bool {
	return len(args) > 3 && args[1] == "thread" && args[2] == "run" && args[3] == "--pre-registered"
}

// keeper sets after each collection when the next one is.
type keeper struct {
	most, now atomic.Int64 // percent
	collected atomic.Bool
}

func newKeeper(percent int64) *keeper {
	k := &keeper{}
	k.most.Store(percent)
	k.now.Store(percent)
	return k
}

// watch has afterCollection called after the next collection.
func (k *keeper) watch() {
	// A smaller object could share its memory with one that lives on.
	runtime.AddCleanup(new([64]byte), func(k *keeper) { k.afterCollection() }, k)
}

func (k *keeper) afterCollection() {
	k.collected.Store(true)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	// The heap of now has garbage in it that is not swept yet.
	live := int64(memory.NextGC) * 100 / (100 + k.now.Load()) //nolint:gosec // no heap is that large
	k.set(percentFor(live, k.most.Load()))
	k.watch()
}

// settle is afterCollection for a thread that lives on. It gives back once what the start
// has left: Go keeps lists of its memory for every second collection, so that another
// one makes the process larger.
func (k *keeper) settle() {
	k.most.Store(settledPercent)
	k.set(settledPercent)
	if !k.collected.Load() {
		debug.FreeOSMemory()
	}
}

func (k *keeper) set(percent int64) {
	k.now.Store(percent)
	debug.SetGCPercent(int(percent))
}

// percentFor is the GOGC under which a heap grows to firstHeap, at least by half of what
// lives in it, and at most by so many percent.
func percentFor(live, most int64) int64 {
	return min(most, max(leastPercent, (firstHeap-live)*100/max(1, live)))
}
