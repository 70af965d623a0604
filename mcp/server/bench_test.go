package server_test

import (
	"bufio"
	"context"
	"io"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// BenchmarkToolsList compares a round trip of tools/list through our stdio loop
// with one through mcp-go's, with two tools each.
func BenchmarkToolsList(b *testing.B) {
	b.Run("rye", func(b *testing.B) {
		s, _ := newBlocking(0)
		benchmarkToolsList(b, s.ServeStdio)
	})
	b.Run("mcp-go", func(b *testing.B) {
		bare := mcpserver.NewMCPServer("bare", "1")
		for _, name := range []string{"block", "echo"} {
			bare.AddTool(mcp.NewTool(name, mcp.WithDescription("Says it again."),
				mcp.WithInputSchema[echoIn](), mcp.WithOutputSchema[echoOut]()), nil)
		}
		benchmarkToolsList(b, mcpserver.NewStdioServer(bare).Listen)
	})
}

func benchmarkToolsList(b *testing.B, serve func(context.Context, io.Reader, io.Writer) error) {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- serve(b.Context(), fromClient, toClient) }()
	answers := bufio.NewReader(fromServer)
	request := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}` + "\n")
	for b.Loop() {
		if _, err := toServer.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := answers.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	_ = toServer.Close()
	if err := <-served; err != nil {
		b.Fatal(err)
	}
}
