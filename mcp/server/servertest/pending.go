package servertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// patience is how long a test waits for what has to come.
const patience = time.Minute

// maxResult is how many bytes every client passes on to its model, and a call that
// does not ask for more is answered with.
const maxResult = server.DefaultRoom

// Error is a JSON-RPC error.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Result is what a tool call came to.
type Result struct {
	IsError bool
	JSON    json.RawMessage // the result object, of a failure too
	Err     *Error          // protocol error; the rest is empty then
}

// Code is the code of a failure, or "".
func (r Result) Code() tool.Code {
	var failure struct {
		Code tool.Code `json:"code"`
	}
	if !r.IsError || json.Unmarshal(r.JSON, &failure) != nil {
		return ""
	}
	return failure.Code
}

// Pending is a request without an answer yet.
type Pending struct {
	client    *Client
	id        string
	tool      string
	params    map[string]any       // of a tool call
	last      *float64             // progress; used by the client's reader only
	progress  chan server.Progress // closed when the answer came
	answer    chan wire
	cancelled bool // under the client's mu
}

// ReadProgress waits for the next progress notification. It returns false when
// the answer came instead.
func (p *Pending) ReadProgress() (server.Progress, bool) {
	p.client.t.Helper()
	select {
	case progress, ok := <-p.progress:
		return progress, ok
	case <-time.After(patience):
		p.client.t.Fatalf("no progress of request %s and no answer", p.id)
		return server.Progress{}, false
	}
}

// Cancel tells the server that the answer is not wanted any more. An answer
// that still comes fails the test, so the call must be one that does not return
// by itself. Over HTTP nothing keeps a request and its cancellation in order:
// wait until the handler runs.
func (p *Pending) Cancel() {
	p.client.t.Helper()
	p.client.mu.Lock()
	p.cancelled = true
	p.client.mu.Unlock()
	if p.client.protocol == stateless && p.client.transport != Stdio && p.client.transport != SSE {
		p.Cut()
		return
	}
	p.client.send(wire{
		Method: "notifications/cancelled",
		Params: json.RawMessage(fmt.Sprintf(`{"requestId":%q,"reason":"test"}`, p.id)),
	})
}

// ID is the request's id, a string.
func (p *Pending) ID() string { return p.id }

// Protocol is the revision of the request.
func (p *Pending) Protocol() string { return p.client.protocol }

// Cut closes the connection that the answer would come on. It is for transports
// that have one for each request.
func (p *Pending) Cut() { p.client.link.cut(p.id) }

// Result waits for the answer of a tool call and checks it. Where the call ends
// with questions, the person is asked and the call made again.
func (p *Pending) Result() Result {
	t := p.client.t
	t.Helper()
	w := p.wait()
	if again := p.again(w.Result); again != nil {
		return again.Result()
	}
	if w.Error != nil {
		return Result{Err: w.Error}
	}
	var result struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := json.Unmarshal(w.Result, &result); err != nil {
		t.Fatalf("result of %s: %v", p.tool, err)
	}
	if len(result.Content) != 1 || result.Content[0].Type != "text" {
		t.Fatalf("result of %s has not exactly one text: %s", p.tool, w.Result)
	}
	text := result.Content[0].Text
	if !sameJSON([]byte(text), result.Structured) {
		t.Errorf("result of %s: text and structured content differ:\n%s\n%s", p.tool, text, result.Structured)
	}
	if len(text) > maxResult && !p.asksForMore() {
		t.Errorf("result of %s has %d bytes, more than %d", p.tool, len(text), maxResult)
	}
	if schema := p.client.schemas[p.tool]; schema != nil {
		if err := tool.Validate(schema, result.Structured); err != nil {
			t.Errorf("result of %s does not fit its output schema: %v\n%s", p.tool, err, text)
		}
	}
	return Result{IsError: result.IsError, JSON: json.RawMessage(text)}
}

func (p *Pending) wait() wire {
	p.client.t.Helper()
	select {
	case w := <-p.answer:
		return w
	case <-time.After(patience):
		p.client.t.Fatalf("no answer to request %s", p.id)
		return wire{}
	}
}

// sameJSON reports whether a and b are the same value; escapes and the order of
// members may differ.
func sameJSON(a, b []byte) bool {
	va, errA := decode(a)
	vb, errB := decode(b)
	return errA == nil && errB == nil && reflect.DeepEqual(va, vb)
}

func decode(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// asksForMore reports whether the call says how long its answer may be.
func (p *Pending) asksForMore() bool {
	raw, err := json.Marshal(p.params["arguments"])
	return err == nil && bytes.Contains(raw, []byte(`"max_bytes":`))
}
