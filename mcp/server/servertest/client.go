// Package servertest is an MCP client for tests of servers and of the tools
// added to them, over every transport. It fails the test when the server breaks a promise
// that holds for every tool: structured content and text are the same JSON, it
// fits the output schema, where the server tells it, and the size clients pass on, progress comes before
// the answer and grows.
package servertest

import (
	"encoding/json"
	"strconv"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

// Protocol is the revision the client speaks unless an option says otherwise.
const Protocol = "2025-11-25"

// stateless is the revision that has no handshake and no sessions.
const stateless = "2026-07-28"

// Option changes what the client is.
type Option func(*Client)

// WithRoots makes the client declare roots and answer with these directories.
func WithRoots(dirs ...string) Option {
	return func(c *Client) { c.hasRoots, c.roots = true, dirs }
}

// Asking makes the client declare elicitation and ask person, who may take their
// time and is asked from several goroutines at once.
func Asking(person func(Question) Answer) Option {
	return func(c *Client) { c.person = person }
}

// Over makes the client use a transport other than [Stdio].
func Over(transport Transport) Option {
	return func(c *Client) {
		c.transport = transport
		if transport == Stateless {
			c.protocol = stateless
		}
	}
}

// Speaking makes the client use a protocol revision other than [Protocol].
func Speaking(revision string) Option {
	return func(c *Client) { c.protocol = revision }
}

// OnNotification has the client hand over notifications that nothing else is for. Noted
// must not wait.
func OnNotification(noted func(method string, params json.RawMessage)) Option {
	return func(c *Client) { c.noted = noted }
}

// TakingTasks makes the client declare the tasks extension.
func TakingTasks() Option {
	return func(c *Client) { c.takesTasks = true }
}

// Client is one connected and initialized client. Its methods are safe for
// concurrent use; those that can fail the test at once are for the test's own
// goroutine.
type Client struct {
	t         testing.TB
	transport Transport
	protocol  string
	schemas   map[string]json.RawMessage // output schemas by tool
	hasRoots  bool
	roots     []string
	person    func(Question) Answer                       // nil: elicitation is not declared
	noted     func(method string, params json.RawMessage) // nil: others are errors
	link      link

	takesTasks bool

	mu      sync.Mutex
	nextID  int
	pending map[string]*Pending      // without an answer, by id
	asked   map[string]chan struct{} // questions of the server, by id; closed when withdrawn
	left    bool                     // no response to the server is sent any more

	responses sync.WaitGroup // on their way to the server
}

// Start serves s to a new client until the test ends, and fails the test when
// serving ends with an error.
func Start(t testing.TB, s *server.Server, opts ...Option) *Client {
	t.Helper()
	c := newClient(t, opts)
	if c.transport == Stdio {
		c.begin(startPipes(t, s, c))
	} else {
		c.begin(dial(t, Serve(t, s, server.HTTPOptions{}), c))
	}
	return c
}

// Connect returns a further client of a server that [Serve] serves at url. The
// transport is [StreamableHTTP] unless an option says otherwise.
func Connect(t testing.TB, url string, opts ...Option) *Client {
	t.Helper()
	c := newClient(t, append([]Option{Over(StreamableHTTP)}, opts...))
	c.begin(dial(t, url, c))
	return c
}

func newClient(t testing.TB, opts []Option) *Client {
	c := &Client{
		t: t, transport: Stdio, protocol: Protocol,
		pending: make(map[string]*Pending), asked: make(map[string]chan struct{}),
	}
	for _, opt := range opts {
		opt(c)
	}
	return c
}

// begin does the handshake, where there is one, and learns the tools.
func (c *Client) begin(l link) {
	c.t.Helper()
	c.link = l
	c.t.Cleanup(c.stopResponding) // before what the link has registered
	if c.protocol != stateless {
		c.initialize()
	}
	if w, ok := l.(*web); ok && c.transport == StreamableHTTP && c.noted != nil {
		w.hear()
	}
	c.schemas = make(map[string]json.RawMessage)
	for _, tool := range c.Tools() {
		c.schemas[tool.Name] = tool.OutputSchema
	}
}

func (c *Client) initialize() {
	c.t.Helper()
	raw, err := c.Request("initialize", map[string]any{
		"protocolVersion": c.protocol,
		"capabilities":    c.capabilities(),
		"clientInfo":      map[string]any{"name": "servertest", "version": "1"},
	})
	if err != nil {
		c.t.Fatalf("initialize: %v", err)
	}
	var result struct {
		Protocol string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(raw, &result); err != nil || result.Protocol != c.protocol {
		c.t.Fatalf("initialize with revision %s: %s (%v)", c.protocol, raw, err)
	}
	c.send(wire{Method: "notifications/initialized"})
}

func (c *Client) capabilities() map[string]any {
	declared := make(map[string]any)
	if c.hasRoots {
		declared["roots"] = map[string]any{}
	}
	if c.person != nil {
		declared["elicitation"] = map[string]any{}
	}
	if c.takesTasks {
		declared["extensions"] = map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}
	}
	return declared
}

// Transport is the one the client uses.
func (c *Client) Transport() Transport { return c.transport }

// Tool is a tool as tools/list shows it.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  json.RawMessage `json:"annotations"`
	Meta         map[string]any  `json:"_meta"`
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
	return c.call(map[string]any{"name": tool, "arguments": args}, tool)
}

// call sends tools/call with params.
func (c *Client) call(params map[string]any, tool string) *Pending {
	c.t.Helper()
	p := c.newPending()
	p.tool, p.params = tool, params
	params["_meta"] = map[string]any{"progressToken": p.id}
	c.ask(p, "tools/call", params)
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

// Listen asks to be told of changes, as revision 2026-07-28 has it: filter marshals to
// the notifications that are wanted. They go to the function of
// [OnNotification], until the returned request is cancelled.
func (c *Client) Listen(filter any) *Pending {
	c.t.Helper()
	p := c.newPending()
	c.ask(p, "subscriptions/listen", map[string]any{"notifications": filter})
	return p
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
	if c.protocol == stateless {
		raw = c.declare(raw)
	}
	c.send(wire{ID: quote(p.id), Method: method, Params: raw})
}

// declare adds what every request of revision 2026-07-28 says about its client.
func (c *Client) declare(params json.RawMessage) json.RawMessage {
	decoded, err := decode(params)
	members, ok := decoded.(map[string]any)
	if err != nil || !ok {
		c.t.Errorf("params %s: %v", params, err)
		return params
	}
	meta, ok := members["_meta"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		members["_meta"] = meta
	}
	meta["io.modelcontextprotocol/protocolVersion"] = c.protocol
	meta["io.modelcontextprotocol/clientCapabilities"] = c.capabilities()
	meta["io.modelcontextprotocol/clientInfo"] = map[string]any{"name": "servertest", "version": "1"}
	raw, err := json.Marshal(members)
	if err != nil {
		c.t.Errorf("params: %v", err)
	}
	return raw
}

func (c *Client) send(w wire) {
	c.t.Helper()
	w.JSONRPC = "2.0"
	if err := c.link.send(w); err != nil {
		c.t.Errorf("send to server: %v", err)
	}
}

// respond sends the response to a request of the server. It may come when the
// test has ended: a client that goes then sends none, as its session is no more.
func (c *Client) respond(w wire) {
	c.mu.Lock()
	if c.left {
		c.mu.Unlock()
		return
	}
	c.responses.Add(1)
	c.mu.Unlock()
	defer c.responses.Done()
	c.send(w)
}

// stopResponding returns when the responses on their way have arrived, and lets
// no more go.
func (c *Client) stopResponding() {
	c.mu.Lock()
	c.left = true
	c.mu.Unlock()
	c.responses.Wait()
}
