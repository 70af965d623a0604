package servertest

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"strconv"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

// wire is any JSON-RPC message.
type wire struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

func quote(id string) json.RawMessage { return json.RawMessage(strconv.Quote(id)) }

// read hands a message of the server to whoever waits for it.
func (c *Client) read(line []byte) {
	var w wire
	if err := json.Unmarshal(line, &w); err != nil || w.JSONRPC != "2.0" {
		c.t.Errorf("not a message: %s", line)
		return
	}
	switch w.Method {
	case "":
		c.answered(w, line)
	case "notifications/progress":
		c.reported(w)
	case "roots/list":
		// Elsewhere, as this goroutine must go on reading.
		go c.sendRoots(w.ID)
	case "elicitation/create":
		c.asks(w)
	case "notifications/cancelled":
		c.withdrawn(w)
	default:
		if c.noted == nil || len(w.ID) > 0 {
			c.t.Errorf("unexpected message: %s", line)
			return
		}
		c.noted(w.Method, w.Params)
	}
}

func (c *Client) reported(w wire) {
	var p struct {
		Token    string  `json:"progressToken"`
		Progress float64 `json:"progress"`
		Total    float64 `json:"total"`
		Message  string  `json:"message"`
	}
	if err := json.Unmarshal(w.Params, &p); err != nil {
		c.t.Errorf("progress %s: %v", w.Params, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	pending := c.pending[p.Token]
	if pending == nil {
		c.t.Errorf("progress of a call that is unknown or answered: %s", w.Params)
		return
	}
	if pending.last != nil && p.Progress <= *pending.last {
		c.t.Errorf("progress went from %v to %v; it must grow", *pending.last, p.Progress)
	}
	pending.last = &p.Progress
	select {
	case pending.progress <- server.Progress{Progress: p.Progress, Total: p.Total, Message: p.Message}:
	default:
		c.t.Errorf("more than %d progress notifications that nobody read", cap(pending.progress))
	}
}

func (c *Client) answered(w wire, line []byte) {
	var id string
	if err := json.Unmarshal(w.ID, &id); err != nil {
		c.t.Errorf("answer to no request: %s", line)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	pending := c.pending[id]
	if pending == nil || pending.cancelled {
		c.t.Errorf("answer to request %q, which is unknown, answered or cancelled: %s", id, line)
		return
	}
	delete(c.pending, id)
	close(pending.progress)
	pending.answer <- w
}

func (c *Client) sendRoots(id json.RawMessage) {
	type root struct {
		URI string `json:"uri"`
	}
	roots := make([]root, len(c.roots))
	for i, dir := range c.roots {
		u := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
		roots[i].URI = u.String()
	}
	c.respond(wire{ID: id, Result: c.encode(map[string]any{"roots": roots})})
}
