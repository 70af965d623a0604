// Command conformance is a server on the machinery of mcp/server with the tools,
// prompts and resources that scenarios of the official conformance suite ask for. It
// is for .ci/conformance alone: the scenarios whose fixtures no real server has. Those
// that need none run against rye-mcp itself.
package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// serve says on standard output where it serves, and does so until it is ended.
func serve() error {
	s := server.New(server.Options{Version: "conformance", Log: zerolog.New(os.Stderr)})
	offered := &prompts{}
	addTools(s, offered)
	work := &tasks{}
	addTaskTools(s, work)
	s.OfferTasks(work)
	s.OfferPrompts(offered)
	s.OfferResources(resources{})
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	return s.ServeHTTPOn(context.Background(), listener, server.HTTPOptions{})
}
