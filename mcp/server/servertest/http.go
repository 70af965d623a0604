package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

// Serve serves s over HTTP on this machine until the test ends, and returns the
// server's address, such as http://127.0.0.1:4711.
func Serve(t testing.TB, s *server.Server, opts server.HTTPOptions) string {
	t.Helper()
	var listen net.ListenConfig
	listener, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.ServeHTTPOn(ctx, listener, opts) }()
	t.Cleanup(func() {
		stop(errEnded)
		if err := <-served; !errors.Is(err, errEnded) {
			t.Errorf("ServeHTTPOn: %v", err)
		}
	})
	return "http://" + listener.Addr().String()
}

// web is a link over HTTP.
type web struct {
	client    *Client
	url       string
	transport *http.Transport
	ctx       context.Context //nolint:containedctx // ends with the test, and with it all requests
	requests  sync.WaitGroup

	mu      sync.Mutex
	session string
	post    string // path of POST
	cuts    map[string]context.CancelFunc
}

// dial connects to a server. For [SSE] it returns when the server has said
// where to post.
func dial(t testing.TB, url string, c *Client) *web {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	w := &web{
		client: c, url: url, transport: &http.Transport{}, ctx: ctx, post: "/mcp",
		cuts: make(map[string]context.CancelFunc),
	}
	t.Cleanup(func() {
		if w.session != "" {
			w.leave(t)
		}
		end()
		w.requests.Wait()
		w.transport.CloseIdleConnections()
	})
	if c.transport != SSE {
		return w
	}
	endpoint := make(chan string, 1)
	w.requests.Go(func() {
		if err := w.stream(endpoint); err != nil && ctx.Err() == nil {
			t.Errorf("GET /sse: %v", err)
		}
		close(endpoint)
	})
	if w.post = <-endpoint; w.post == "" {
		t.Fatal("GET /sse named no endpoint")
	}
	return w
}

// stream reads GET /sse until it ends.
func (w *web) stream(endpoint chan<- string) error {
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, w.url+"/sse", http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := w.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	w.events(resp.Body, func(path string) { endpoint <- path })
	return nil
}

// events reads server-sent events.
func (w *web) events(body io.Reader, endpoint func(path string)) {
	event := ""
	readLines(body, func(line []byte) {
		name, value, _ := strings.Cut(string(line), ": ")
		switch {
		case name == "event":
			event = value
		case name == "data" && event == "endpoint":
			endpoint(value)
		case name == "data":
			w.client.read([]byte(value))
		}
	})
}

// leave ends the session.
func (w *web) leave(t testing.TB) {
	req, err := http.NewRequestWithContext(w.ctx, http.MethodDelete, w.url+"/mcp", http.NoBody)
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Mcp-Session-Id", w.session)
	resp, err := w.transport.RoundTrip(req)
	if err != nil {
		t.Errorf("DELETE: %v", err)
		return
	}
	_ = resp.Body.Close() // read or not, the connection is not used again
	if resp.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE = %s", resp.Status)
	}
}

// send posts a message. Requests do not wait for their answer; the others are
// over when send returns.
func (w *web) send(m wire) error {
	if len(m.ID) == 0 || m.Method == "" {
		return w.exchange(w.ctx, m)
	}
	ctx, cut := context.WithCancel(w.ctx)
	w.mu.Lock()
	w.cuts[string(m.ID)] = cut
	w.mu.Unlock()
	w.requests.Go(func() {
		defer cut()
		if err := w.exchange(ctx, m); err != nil && ctx.Err() == nil {
			w.client.t.Errorf("POST %s: %v", m.Method, err)
		}
	})
	return nil
}

func (w *web) cut(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cuts[string(quote(id))]()
}

// exchange posts a message and reads what comes back.
func (w *web) exchange(ctx context.Context, m wire) error {
	req, err := w.newRequest(ctx, m)
	if err != nil {
		return err
	}
	resp, err := w.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		w.mu.Lock()
		w.session = id
		w.mu.Unlock()
	}
	switch media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media {
	case "text/event-stream":
		w.events(resp.Body, func(string) {})
	case "application/json":
		readLines(resp.Body, w.client.read)
	default:
		if resp.StatusCode != http.StatusAccepted {
			return fmt.Errorf("answered with %s", resp.Status)
		}
	}
	return nil
}

func (w *web) newRequest(ctx context.Context, m wire) (*http.Request, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+w.post, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.client.protocol == stateless:
		req.Header.Set("Mcp-Protocol-Version", stateless)
		req.Header.Set("Mcp-Method", m.Method)
		req.Header.Set("Mcp-Name", nameIn(m.Params))
	case w.session != "":
		req.Header.Set("Mcp-Session-Id", w.session)
		req.Header.Set("Mcp-Protocol-Version", w.client.protocol)
	}
	return req, nil
}

// nameIn is what the header Mcp-Name repeats of params, or "".
func nameIn(params json.RawMessage) string {
	var named struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
	}
	_ = json.Unmarshal(params, &named) // a request without params has none
	return named.Name + named.URI
}

// hear opens the stream of what belongs to no request.
func (w *web) hear() {
	w.requests.Go(func() {
		req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, w.url+"/mcp", http.NoBody)
		if err != nil {
			w.client.t.Error(err)
			return
		}
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Mcp-Session-Id", w.session)
		req.Header.Set("Mcp-Protocol-Version", w.client.protocol)
		resp, err := w.transport.RoundTrip(req)
		if err != nil {
			if w.ctx.Err() == nil {
				w.client.t.Errorf("GET /mcp: %v", err)
			}
			return
		}
		defer func() { _ = resp.Body.Close() }()
		w.events(resp.Body, func(string) {})
	})
}
