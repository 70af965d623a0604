// Package ahead connects the process of a thread to the server that has the threads while
// packages of other modules are still initialized: see package gc for why that is early. Half
// of what such a process waits for that server is then over when it comes to need it.
package ahead

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// Connection is to where the threads of a project are; Store is nil where it is not there yet.
type Connection struct {
	Server *postgres.Server
	Store  *postgres.Store
	Err    error
}

// begun has the connection of this process; nil: none was begun.
var begun chan Connection

// Inherit takes over what the starter of this process has handed over.
var Inherit = sync.OnceValues(func() (spawn.Inheritance, error) {
	entries, err := process.InheritSecrets()
	if err != nil {
		return spawn.Inheritance{}, err
	}
	return spawn.Inherited(entries), nil
})

//nolint:gochecknoinits // there is no other moment before those of other modules
func init() {
	if spawn.IsThread(os.Args) {
		begin()
	}
}

// begin connects beside what the process does before it needs the server. What fails is told
// to who takes the connection.
func begin() {
	begun = make(chan Connection, 1)
	most := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(most + 1) // a thread's process has one, which is busy (orchestrator/spawn)
	go func() {
		defer runtime.GOMAXPROCS(most)
		defer close(begun)
		in, err := Inherit()
		if err != nil || in.Store == nil {
			return
		}
		if url, err := storeurl.Parse(in.Store.URL); err == nil && !url.IsLocal() {
			var c Connection
			c.Server, c.Store, c.Err = postgres.Lookup(context.Background(), Options(url), in.Store.Project)
			begun <- c
		}
	}()
}

// Options are those of the process of a thread, which works by one connection.
func Options(url storeurl.URL) postgres.Options {
	return postgres.Options{URL: url.Secret(), Connections: 1, Alone: true, Application: Application()}
}

// Application is what the server is told of this process.
func Application() string { return fmt.Sprintf("rye-mcp %d", os.Getpid()) }

// Take returns the connection that was begun, once; known is false where none was.
func Take() (c Connection, known bool) {
	if begun == nil {
		return c, false
	}
	c, known = <-begun
	return c, known
}
