// Package servertest is an MCP client in memory, for tests of servers and of
// the tools added to them. It fails the test when the server breaks a promise
// that holds for every tool: structured content and text are the same JSON, it
// fits the output schema and the size clients pass on, progress comes before
// the answer and grows.
package servertest

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

// Protocol is the revision the client asks for.
const Protocol = "2025-11-25"

// Option changes what the client is.
type Option func(*Client)

// WithRoots makes the client declare roots and answer with these directories.
func WithRoots(dirs ...string) Option {
	return func(c *Client) { c.hasRoots, c.roots = true, dirs }
}

// Client is one connected and initialized client. Its methods are safe for
// concurrent use; those that can fail the test at once are for the test's own
// goroutine.
type Client struct {
	t        testing.TB
	schemas  map[string]json.RawMessage // output schemas by tool
	hasRoots bool
	roots    []string

	writing sync.Mutex
	in      *io.PipeWriter // to the server

	mu      sync.Mutex
	nextID  int
	pending map[string]*Pending // without an answer, by id
}

// Start serves s to a new client until the test ends, and fails the test when
// serving ends with an error.
func Start(t testing.TB, s *server.Server, opts ...Option) *Client {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	c := &Client{t: t, in: toServer, pending: make(map[string]*Pending)}
	for _, opt := range opts {
		opt(c)
	}

	served := make(chan error, 1)
	go func() {
		err := s.ServeStdio(context.Background(), fromClient, toClient)
		_ = toClient.Close() // never fails
		served <- err
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.read(fromServer)
	}()
	t.Cleanup(func() {
		_ = toServer.Close() // never fails
		if err := <-served; err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
		<-read
	})

	c.initialize()
	c.schemas = make(map[string]json.RawMessage)
	for _, tool := range c.Tools() {
		c.schemas[tool.Name] = tool.OutputSchema
	}
	return c
}

func (c *Client) initialize() {
	c.t.Helper()
	capabilities := map[string]any{}
	if c.hasRoots {
		capabilities["roots"] = map[string]any{}
	}
	_, err := c.Request("initialize", map[string]any{
		"protocolVersion": Protocol,
		"capabilities":    capabilities,
		"clientInfo":      map[string]any{"name": "servertest", "version": "1"},
	})
	if err != nil {
		c.t.Fatalf("initialize: %v", err)
	}
	c.send(wire{Method: "notifications/initialized"})
}

// Tool is a tool as tools/list shows it.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  json.RawMessage `json:"annotations"`
}

// Tools lists the server's tools.
func (c *Client) Tools() []Tool {
	c.t.Helper()
	raw, rpcErr := c.Request("tools/list", map[string]any{})
	if rpcErr != nil {
		c.t.Fatalf("tools/list: %v", rpcErr)
	}
	var list struct {
		Tools []Tool `json:"tools"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		c.t.Fatalf("tools/list: %v", err)
	}
	return list.Tools
}

// Call calls a tool with args, which marshal to a JSON object, and waits.
func (c *Client) Call(tool string, args any) Result {
	c.t.Helper()
	return c.CallAsync(tool, args).Result()
}

// CallAsync calls a tool, asks for progress, and does not wait.
func (c *Client) CallAsync(tool string, args any) *Pending {
	c.t.Helper()
	p := c.newPending()
	p.tool = tool
	c.ask(p, "tools/call", map[string]any{
		"name":      tool,
		"arguments": args,
		"_meta":     map[string]any{"progressToken": p.id},
	})
	return p
}

// Request sends any request and waits for its result or error.
func (c *Client) Request(method string, params any) (json.RawMessage, *Error) {
	c.t.Helper()
	p := c.newPending()
	c.ask(p, method, params)
	answer := p.wait()
	return answer.Result, answer.Error
}

func (c *Client) newPending() *Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	p := &Pending{
		client: c,
		id:     strconv.Itoa(c.nextID),
		// A call is sent ten notifications a second at most, and tests end
		// long before there are that many.
		progress: make(chan server.Progress, 1024),
		answer:   make(chan wire, 1),
	}
	c.pending[p.id] = p
	return p
}

func (c *Client) ask(p *Pending, method string, params any) {
	c.t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		c.t.Fatalf("params of %s: %v", method, err)
	}
	c.send(wire{ID: quote(p.id), Method: method, Params: raw})
}

func (c *Client) send(w wire) {
	c.t.Helper()
	w.JSONRPC = "2.0"
	line, err := json.Marshal(w)
	if err != nil {
		c.t.Errorf("message: %v", err)
		return
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		c.t.Errorf("write to server: %v", err)
	}
}
