package servertest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

// Transport is how a client reaches the server.
type Transport string

// Transports there are.
const (
	Stdio          Transport = "stdio"
	StreamableHTTP Transport = "streamable HTTP"
	SSE            Transport = "SSE"
	Stateless      Transport = "stateless HTTP" // streamable HTTP as revision 2026-07-28 has it
)

// Transports are all of them, for tests of what is the same over each.
var Transports = []Transport{Stdio, StreamableHTTP, SSE, Stateless}

// link carries messages to the server. It hands what comes back to Client.read.
type link interface {
	send(w wire) error
	// cut breaks off what the answer to request id would come on.
	cut(id string)
}

// pipes is a link over stdio.
type pipes struct {
	mu sync.Mutex
	in *io.PipeWriter
}

func startPipes(t testing.TB, s *server.Server, c *Client) *pipes {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := s.ServeStdio(context.Background(), fromClient, toClient)
		_ = toClient.Close() // never fails
		served <- err
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		readLines(fromServer, c.read)
	}()
	t.Cleanup(func() {
		_ = toServer.Close() // never fails
		if err := <-served; err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
		<-read
	})
	return &pipes{in: toServer}
}

func (p *pipes) send(w wire) error {
	line, err := json.Marshal(w)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err = p.in.Write(append(line, '\n'))
	return err
}

func (p *pipes) cut(string) { panic("stdio has no connections to cut") }

// readLines calls each with the lines of in, until it ends.
func readLines(in io.Reader, each func([]byte)) {
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 || err == nil {
			each(line)
		}
		if err != nil {
			return
		}
	}
}

// errEnded is what requests of a client end with when its test does.
var errEnded = errors.New("the test has ended")
