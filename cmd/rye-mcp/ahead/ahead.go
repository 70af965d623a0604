// Package ahead begins, before packages of other modules are initialized that take longest,
// what the process of a thread needs soon and can do beside that: see package gc. It connects
// the process to the server that has the threads, so that most of what it waits for the server
// is over when it needs it. It imports little for that.
package ahead

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn/handed"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/link"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// begun gives the link of this process, nil where there is none; it is nil itself where none
// was begun.
var begun chan *link.Link

// Inherit takes over the entries that the starter of this process has handed over.
var Inherit = sync.OnceValues(process.InheritSecrets)

//nolint:gochecknoinits // there is no other moment before those of other modules
func init() {
	if handed.IsThread(os.Args) {
		growStack()
		begin()
	}
}

// begin connects beside what the process does before it needs the server.
func begin() {
	begun = make(chan *link.Link, 1)
	Beside(connect)
}

func connect() {
	defer close(begun)
	entries, err := Inherit()
	if err != nil {
		return // callers that need them report the error
	}
	for _, entry := range entries {
		if at, is := handed.StoreOf(entry); is {
			begun <- beginAt(at)
			return
		}
	}
}

var processors sync.Mutex

// Beside runs f on a processor more than the process has: that of a thread has one
// (orchestrator/spawn), which is busy while it starts.
func Beside(f func()) {
	more := func(n int) {
		processors.Lock()
		defer processors.Unlock()
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
	}
	more(1)
	go func() {
		defer more(-1)
		f()
	}()
}

// beginAt returns nil where there is no server, or none can be reached by what is said of it.
func beginAt(at *handed.Store) *link.Link {
	url, err := storeurl.Parse(at.URL)
	if err != nil || url.IsLocal() {
		return nil
	}
	l, err := link.Begin(context.Background(), Options(url), at.Project)
	if err != nil {
		return nil
	}
	return l
}

// Options are those of the process of a thread, which works by one connection.
func Options(url storeurl.URL) link.Options {
	return link.Options{URL: url.Secret(), Connections: 1, Alone: true, Patient: true, Application: Application()}
}

// Application is what the server is told of this process.
func Application() string { return fmt.Sprintf("rye-mcp %d", os.Getpid()) }

// Take returns the link that was begun, once; nil where there is none.
func Take() *link.Link {
	if begun == nil {
		return nil
	}
	return <-begun
}
