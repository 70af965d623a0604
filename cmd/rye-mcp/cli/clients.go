package cli

import (
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/news"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// clientele knows the clients of a server, whose threads they are to be told of.
type clientele struct {
	identify func(server.Session) news.Client
	self     func() thread.Process
	serves   func(session string) bool // nil: there is one client
}

// placed makes the clientele of a server, which finds out where it is when it needs to.
type placed func(s *server.Server, here func() process.Place) clientele

// oneClient is the program that has started this server. It is the same client when it
// starts another server.
func oneClient(_ *server.Server, here func() process.Place) clientele {
	starter := process.Starter()
	client := sync.OnceValue(func() news.Client { return news.Client{Process: thread.Process(here().Identify(starter))} })
	return clientele{identify: func(server.Session) news.Client { return client() }}
}

// manyClients are known by their sessions. In the revision without sessions all
// requests that name the same client software are one client: whichever comes next is
// told.
func manyClients(s *server.Server, here func() process.Place) clientele {
	self := sync.OnceValue(func() thread.Process { return thread.Process(here().Self()) })
	return clientele{self: self, serves: s.Serves, identify: func(session server.Session) news.Client {
		c := news.Client{Process: self()}
		if !mcp.IsModernProtocol(session.Protocol) {
			c.Session = session.ID
		}
		return c
	}}
}

// origin is how the threads of a client are known.
func (c clientele) origin(s server.Session) thread.Origin { return c.identify(s).Origin(s.Client) }

// tellAt lets a desk know which clients are gone.
func (c clientele) tellAt(desk *news.Desk) {
	if c.serves != nil {
		desk.Self, desk.Serves = c.self(), c.serves
	}
}

// here is where this process is.
func here(sys System) func() process.Place {
	return sync.OnceValue(func() process.Place {
		host, _ := sys.Hostname() // without one no project opens
		return process.Here(host)
	})
}
