package server_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

// childEnv makes the test binary a server on its stdin and stdout.
const childEnv = "RYE_TEST_SERVE_STDIO"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		err := newServer().ServeStdio(context.Background(), os.Stdin, os.Stdout)
		fmt.Fprintf(os.Stderr, "served: %v\n", err)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// newServer returns a server with the tools the tests call.
func newServer() *server.Server {
	s := server.New(server.Options{Version: "1.2.3", MapError: mapError, OutputSchemas: true})
	server.Add(s, echo)
	server.Add(s, fail)
	server.Add(s, count)
	server.Add(s, block(nil))
	return s
}
