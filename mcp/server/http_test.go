package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
)

const (
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	ping       = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	answer     = `{"jsonrpc":"2.0","id":"rye-9","result":{}}`
	pong       = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"
)

// browser sends HTTP requests that are just as a test says.
type browser struct {
	t         *testing.T
	url       string
	transport *http.Transport
	session   string // sent with every request
}

func browse(t *testing.T, url string) *browser {
	b := &browser{t: t, url: url, transport: &http.Transport{}}
	t.Cleanup(b.transport.CloseIdleConnections)
	return b
}

// serveHTTP serves s to a browser that has a session.
func serveHTTP(t *testing.T, s *server.Server) *browser {
	t.Helper()
	b := browse(t, servertest.Serve(t, s, server.HTTPOptions{}))
	b.open()
	return b
}

// open starts a session.
func (b *browser) open() {
	b.t.Helper()
	r := b.do("POST /mcp", initialize)
	if b.session = r.header.Get("Mcp-Session-Id"); r.status != http.StatusOK || len(b.session) < 20 {
		b.t.Fatalf("initialize = %+v", r)
	}
}

type response struct {
	status int
	header http.Header
	body   string
}

// do sends a request, such as POST /mcp, and reads the whole answer. Headers
// are written "Name: value"; one without value is not sent.
func (b *browser) do(what, body string, headers ...string) response {
	b.t.Helper()
	resp, err := b.send(b.t.Context(), what, strings.NewReader(body), headers...)
	if err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
	return response{resp.StatusCode, resp.Header, string(content)}
}

// send sends a request and leaves the answer to be read.
func (b *browser) send(ctx context.Context, what string, body io.Reader, headers ...string) (*http.Response, error) {
	method, path, _ := strings.Cut(what, " ")
	req, err := http.NewRequestWithContext(ctx, method, b.url+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if b.session != "" {
		req.Header.Set("Mcp-Session-Id", b.session)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		switch {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	return b.transport.RoundTrip(req)
}

// HTTP requests that are refused, and how.
func TestHTTPRules(t *testing.T) {
	t.Parallel()
	b := serveHTTP(t, newServer())
	modern := []string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: ping", "Mcp-Session-Id"}
	modernPing := func(version string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientCapabilities":{}}}}`
	}
	tests := []struct {
		name, what, body string
		headers          []string
		status           int
		want             string // in the body
	}{
		{"a request", "POST /mcp", ping, nil, 200, pong},
		{"a notification", "POST /mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ""},
		{"a response", "POST /mcp", answer, nil, 202, ""},
		{"charset", "POST /mcp", ping, []string{"Content-Type: application/json; charset=utf-8"}, 200, pong},
		{"text", "POST /mcp", ping, []string{"Content-Type: text/plain"}, 415, "application/json"},
		{"no type", "POST /mcp", ping, []string{"Content-Type"}, 415, "application/json"},
		{"a form", "POST /message", ping, []string{"Content-Type: application/x-www-form-urlencoded"}, 404, "GET /sse"},
		{"accepts anything", "POST /mcp", ping, []string{"Accept: */*"}, 200, pong},
		{"accepts what it does not say", "POST /mcp", ping, []string{"Accept"}, 200, pong},
		{"accepts JSON", "POST /mcp", ping, []string{"Accept: application/json"}, 200, pong},
		{"accepts events", "POST /mcp", ping, []string{"Accept: text/event-stream"}, 200, "event: message\ndata: " + pong + "\n"},
		{"accepts HTML", "POST /mcp", ping, []string{"Accept: text/html"}, 406, "text/event-stream"},
		{"accepts not", "POST /mcp", ping, []string{"Accept: */*;q=0"}, 406, "text/event-stream"},
		{"stream as HTML", "GET /mcp", "", []string{"Accept: text/html"}, 406, "text/event-stream"},
		{"not JSON", "POST /mcp", `{"jsonrpc"`, nil, 400, `{"jsonrpc":"2.0","error":{"code":-32700`},
		{"empty", "POST /mcp", "", nil, 400, `"code":-32700`},
		{"no session", "POST /mcp", ping, []string{"Mcp-Session-Id"}, 400, `"id":1,"error":{"code":-32600,"message":"the header Mcp-Session-Id is missing: initialize first`},
		{"other session", "POST /mcp", ping, []string{"Mcp-Session-Id: x"}, 404, `"id":1,"error":{"code":-32600,"message":"the session does not exist or has ended: initialize a new one`},
		{"response to no session", "POST /mcp", answer, []string{"Mcp-Session-Id"}, 400, `{"jsonrpc":"2.0","error":`},
		{"response to other session", "POST /mcp", answer, []string{"Mcp-Session-Id: x"}, 404, `{"jsonrpc":"2.0","error":`},
		{"notification to other session", "POST /mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, []string{"Mcp-Session-Id: x"}, 404, `{"jsonrpc":"2.0","error":`},
		{"stream of other session", "GET /mcp", "", []string{"Mcp-Session-Id: x"}, 404, "initialize a new one"},
		{"end of other session", "DELETE /mcp", "", []string{"Mcp-Session-Id: x"}, 404, "initialize a new one"},
		{"message to no session", "POST /message", ping, nil, 404, "GET /sse"},
		{"message to a session of /mcp", "POST /message?sessionId=" + b.session, ping, nil, 404, "GET /sse"},
		{"old revision", "POST /mcp", ping, []string{"Mcp-Protocol-Version: 2025-03-26"}, 200, pong},
		{"unknown revision", "POST /mcp", ping, []string{"Mcp-Protocol-Version: 2025-01-01"}, 400, `"id":1,"error":{"code":-32600,"message":"protocol version`},
		{"response of unknown revision", "POST /mcp", answer, []string{"Mcp-Protocol-Version: 2025-01-01"}, 400, `{"jsonrpc":"2.0","error":`},
		{"cursor of tools", "POST /mcp", `{"jsonrpc":"2.0","id":9,"method":"tools/list","params":{"cursor":"x!"}}`, nil, 200, `"message":"\"x!\" is not a cursor of tools/list, which has one page: leave cursor out"`},
		{"initialize without client", "POST /mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":7}`, nil, 400, `"code":-32602`},
		{"PUT", "PUT /mcp", "", nil, 405, ""},
		{"GET with a body", "GET /mcp", ping, nil, 400, "only POST"},
		{"HEAD", "HEAD /mcp", "", nil, 405, ""},
		{"POST to /sse", "POST /sse", initialize, nil, 405, ""},
		{"no such path", "POST /", ping, nil, 404, ""},
		{"health", "GET /healthz", "", nil, 200, "ok\n"},

		{"modern", "POST /mcp", modernPing("2026-07-28"), modern, 404, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,`},
		{"modern GET", "GET /mcp", "", modern, 405, ""},
		{"modern DELETE", "DELETE /mcp", "", modern, 405, ""},
		{"modern notification", "POST /mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, modern, 202, ""},
		{"modern response", "POST /mcp", answer, modern, 400, `{"jsonrpc":"2.0","error":{"code":-32600`},
		{"modern without header", "POST /mcp", modernPing("2026-07-28"), nil, 400, `"code":-32020`},
		{"modern without meta", "POST /mcp", ping, modern, 400, `"code":-32602`},
		{"later in the header alone", "POST /mcp", ping, []string{"Mcp-Protocol-Version: 2027-01-01"}, 400, `"message":"unsupported protocol version: \"2027-01-01\" (supported: [2026-07-28 `},
		{"no revision", "POST /mcp", ping, []string{"Mcp-Protocol-Version: bogus"}, 400, `"code":-32022,"message":"unsupported protocol version: \"bogus\" (supported: [2026-07-28 `},
		{"modern, later", "POST /mcp", modernPing("2027-01-01"), []string{"Mcp-Protocol-Version: 2027-01-01"}, 400, `"code":-32022`},
		{"modern, two revisions", "POST /mcp", modernPing("2026-07-28"), []string{"Mcp-Protocol-Version: 2027-01-01"}, 400, `"code":-32020`},
		{"modern, other method", "POST /mcp", modernPing("2026-07-28"), []string{modern[0], "Mcp-Method: tools/list"}, 400, `"code":-32020`},
	}
	// The rows go one after the other: they share a session, and the ids of their requests.
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.do(tt.what, tt.body, tt.headers...)
			if r.status != tt.status || !strings.Contains(r.body, tt.want) {
				t.Errorf("answered %d %s; want %d with %q", r.status, r.body, tt.status, tt.want)
			}
			if r.header.Get("Mcp-Session-Id") != "" {
				t.Error("names a session")
			}
			if r.status == http.StatusMethodNotAllowed && r.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
}

func TestHTTPSessionEnds(t *testing.T) {
	t.Parallel()
	s, seen := newBlocking(1)
	b := serveHTTP(t, s)
	answered := make(chan response, 1)
	go func() { answered <- b.do("POST /mcp", call(1, "block", `{}`)) }()
	<-seen.started
	if r := b.do("DELETE /mcp", ""); r.status != http.StatusNoContent {
		t.Errorf("DELETE = %+v", r)
	}
	if err := <-seen.ended; err != server.ErrClientGone { //nolint:errorlint // the cause itself
		t.Errorf("cause = %v", err)
	}
	if r := <-answered; !strings.Contains(r.body, `"code":"cancelled"`) {
		t.Errorf("call in flight = %+v", r)
	}
	if r := b.do("POST /mcp", ping); r.status != http.StatusNotFound {
		t.Errorf("after DELETE: %+v", r)
	}
}

func TestHTTPSessionLimit(t *testing.T) {
	t.Parallel()
	b := browse(t, servertest.Serve(t, newServer(), server.HTTPOptions{MaxSessions: 2}))
	b.open()
	first := b.session
	b.session = ""
	b.open()
	if r := b.do("POST /mcp", initialize); r.status != http.StatusServiceUnavailable || !strings.Contains(r.body, "2 clients") {
		t.Errorf("third = %+v", r)
	}
	if r := b.do("GET /sse", ""); r.status != http.StatusServiceUnavailable {
		t.Errorf("third over SSE = %+v", r)
	}
	b.session = first
	b.do("DELETE /mcp", "")
	b.session = ""
	// An initialize that fails leaves no session.
	if r := b.do("POST /mcp", strings.Replace(initialize, `"capabilities":{}`, `"capabilities":7`, 1)); !strings.Contains(r.body, `"code":-32602`) || r.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("failed initialize = %+v", r)
	}
	b.open()
}

// A client that goes ends its own calls only, whatever their ids are.
func TestCutEndsOneCall(t *testing.T) {
	t.Parallel()
	for _, transport := range []servertest.Transport{servertest.StreamableHTTP, servertest.Stateless} {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			s, seen := newBlocking(2)
			url := servertest.Serve(t, s, server.HTTPOptions{})
			a := servertest.Connect(t, url, servertest.Over(transport))
			b := servertest.Connect(t, url, servertest.Over(transport))
			left := a.CallAsync("block", struct{}{}) // has the same id as the other
			<-seen.started
			stays := b.CallAsync("block", struct{}{})
			<-seen.started

			meddler := browse(t, url)
			if transport == servertest.StreamableHTTP {
				meddler.open()
			}
			for range 2 { // the first makes sure that the second has been acted on
				meddler.do("POST /mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"`+left.ID()+`"}}`,
					"Mcp-Protocol-Version: "+left.Protocol())
			}
			left.Cut()
			if err := <-seen.ended; err != server.ErrClientGone { //nolint:errorlint // the cause itself
				t.Errorf("cause of the cut call = %v", err)
			}
			select {
			case err := <-seen.ended:
				t.Errorf("the other client's call ended with %v", err)
			default:
			}
			stays.Cancel()
			if err := <-seen.ended; err == nil {
				t.Error("a cancelled call ended without cause")
			}
		})
	}
}

// The end of a server is told to its calls, whose answers still come, and ends
// its streams.
func TestHTTPShutdown(t *testing.T) {
	t.Parallel()
	s, seen := newBlocking(1)
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.ServeHTTPOn(ctx, listener, server.HTTPOptions{}) }()

	b := browse(t, "http://"+listener.Addr().String())
	b.open()
	streams := make(chan response, 2)
	open := make(chan struct{}, 2)
	for _, what := range []string{"GET /mcp", "GET /sse"} {
		go func() {
			resp, err := b.send(t.Context(), what, http.NoBody)
			open <- struct{}{}
			if err != nil {
				t.Errorf("%s: %v", what, err)
				streams <- response{}
				return
			}
			defer func() { _ = resp.Body.Close() }()
			if _, err := io.ReadAll(resp.Body); err != nil {
				t.Errorf("%s ends with %v", what, err)
			}
			streams <- response{status: resp.StatusCode}
		}()
	}
	<-open
	<-open
	answered := make(chan response, 1)
	go func() { answered <- b.do("POST /mcp", call(1, "block", `{}`)) }()
	<-seen.started

	stop(errBroken)
	if err := <-served; err != errBroken { //nolint:errorlint // the cause itself
		t.Errorf("ServeHTTPOn = %v", err)
	}
	if err := <-seen.ended; err != errBroken { //nolint:errorlint // the cause itself
		t.Errorf("cause = %v", err)
	}
	if r := <-answered; !strings.Contains(r.body, `"isError":true`) {
		t.Errorf("call in flight = %+v", r)
	}
	for range 2 {
		if stream := <-streams; stream.status != http.StatusOK {
			t.Errorf("stream = %+v", stream)
		}
	}
	if resp, err := b.send(t.Context(), "GET /healthz", http.NoBody); err == nil {
		_ = resp.Body.Close()
		t.Error("the server still listens")
	}
}

// TestListenerFails: serving ends when nobody can connect any more.
func TestListenerFails(t *testing.T) {
	t.Parallel()
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := newServer().ServeHTTPOn(ctx, listener, server.HTTPOptions{}); err == nil || ctx.Err() != nil {
		t.Errorf("ServeHTTPOn = %v", err)
	}
}

// Further handlers stand behind the same checks as the transports.
func TestFurtherHandlers(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a page") })
	url := servertest.Serve(t, newServer(), server.HTTPOptions{Token: "token", Handlers: map[string]http.Handler{"GET /page/": page}})
	for _, c := range []struct {
		what    string
		headers []string
		want    int
	}{
		{"GET /page/a", []string{"Authorization: Bearer token"}, http.StatusOK},
		{"GET /page/a", nil, http.StatusUnauthorized},
		{"GET /page/a", []string{"Authorization: Bearer token", "Origin: https://evil.example.com"}, http.StatusForbidden},
		{"GET /other", []string{"Authorization: Bearer token"}, http.StatusNotFound},
		{"GET /healthz", nil, http.StatusOK},
	} {
		if r := browse(t, url).do(c.what, "", c.headers...); r.status != c.want || c.want == http.StatusOK && c.what != "GET /healthz" && r.body != "a page" {
			t.Errorf("%s %v: %+v, want %d", c.what, c.headers, r, c.want)
		}
	}
}

// postModern posts a request of revision 2026-07-28 and returns the body of the answer.
func postModern(t *testing.T, url, accept, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "subscriptions/listen")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
