package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

// pipes is a listener in memory, for tests in a bubble, whose time sockets of
// the system do not follow.
type pipes struct {
	dialled chan net.Conn
	closed  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialled:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.dialled <- theirs
	return ours, nil
}

// inBubble runs a test whose time passes at once, with a browser of the
// server that serve makes there.
func inBubble(t *testing.T, serve func() *server.Server, opts server.HTTPOptions, test func(t *testing.T, b *browser)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener := &pipes{dialled: make(chan net.Conn), closed: make(chan struct{})}
		ctx, stop := context.WithCancelCause(context.Background())
		served := make(chan error, 1)
		s := serve()
		go func() { served <- s.ServeHTTPOn(ctx, listener, opts) }()
		b := &browser{t: t, url: "http://localhost", transport: &http.Transport{DialContext: listener.dial}}
		test(t, b)
		stop(errBroken)
		if err := <-served; !errors.Is(err, errBroken) {
			t.Errorf("ServeHTTPOn: %v", err)
		}
		b.transport.CloseIdleConnections()
	})
}

// A session that nobody uses ends; a stream or a call keeps it.
func TestSessionTimeout(t *testing.T) {
	t.Parallel()
	opts := server.HTTPOptions{SessionTimeout: 10 * time.Minute}
	inBubble(t, newServer, opts, func(t *testing.T, b *browser) {
		b.open()
		for range 3 {
			<-time.After(9 * time.Minute)
			if r := b.do("POST /mcp", ping); r.status != http.StatusOK {
				t.Fatalf("a session in use: %+v", r)
			}
		}
		ctx, leave := context.WithCancel(t.Context())
		stream, err := b.send(ctx, "GET /mcp", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = stream.Body.Close() }()
		read := make(chan string)
		go func() {
			all, _ := io.ReadAll(stream.Body) // ends when the test leaves
			read <- string(all)
		}()
		<-time.After(time.Hour)
		if r := b.do("POST /mcp", ping); r.status != http.StatusOK {
			t.Errorf("a session with a stream: %+v", r)
		}
		leave()
		if got := <-read; strings.Trim(got, ": \n") != "" || strings.Count(got, ":") < 200 {
			t.Errorf("an idle stream brings %q, want comments only, four a minute", got)
		}
		<-time.After(11 * time.Minute)
		if r := b.do("POST /mcp", ping); r.status != http.StatusNotFound {
			t.Errorf("a session nobody used: %+v", r)
		}
	})
}

// A POST is answered with JSON or events, by what comes and what the client
// reads.
func TestReplyForms(t *testing.T) {
	t.Parallel()
	counting := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{"steps":2,"pause":150},"_meta":{"progressToken":"t"}}}`
	const patient = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{"steps":2,"pause":1500}}}`
	tests := []struct {
		name, body, accept string
		media              string
		events             int
	}{
		{"quick", ping, "", "application/json", 0},
		{"quick, as events", ping, "Accept: text/event-stream", "text/event-stream", 1},
		{"with progress", counting, "", "text/event-stream", 3},
		{"with progress, as JSON", counting, "Accept: application/json", "application/json", 0},
		{"slow", patient, "", "text/event-stream", 1},
		{"slow, as JSON", patient, "Accept: application/json", "application/json", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, newServer, server.HTTPOptions{}, func(t *testing.T, b *browser) {
				b.open()
				headers := []string{tt.accept}
				if tt.accept == "" {
					headers = nil
				}
				r := b.do("POST /mcp", tt.body, headers...)
				if r.header.Get("Content-Type") != tt.media || strings.Count(r.body, "event: message\ndata: ") != tt.events {
					t.Errorf("answered %s %s", r.header.Get("Content-Type"), r.body)
				}
				if !strings.Contains(r.body, `"id":1,"result":`) || strings.Index(r.body, `"result"`) < strings.LastIndex(r.body, "progressToken") {
					t.Errorf("the answer is not the last message: %s", r.body)
				}
			})
		})
	}
}

// A cancelled request is over for HTTP too, without an answer.
func TestCancelledReply(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]int{"application/json, text/event-stream": http.StatusOK, "application/json": http.StatusNoContent} {
		inBubble(t, newServer, server.HTTPOptions{}, func(t *testing.T, b *browser) {
			b.open()
			answered := make(chan response, 1)
			go func() { answered <- b.do("POST /mcp", call(1, "block", `{}`), "Accept: "+accept) }()
			synctest.Wait()
			b.do("POST /mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
			if r := <-answered; r.status != want || r.body != "" {
				t.Errorf("%s: answered %+v", accept, r)
			}
		})
	}
}

// A connection that says nothing, or not all, is closed.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, sent string
		want       string // the first line of the answer; "" for none
		within     time.Duration
	}{
		{"nothing", "", "", 11 * time.Second},
		{"half a header", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ", "", 11 * time.Second},
		{"half a body", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", "HTTP/1.1 408 Request Timeout\r\n", 31 * time.Second},
		{"nothing more", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200 OK\r\n", 121 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, newServer, server.HTTPOptions{}, func(t *testing.T, b *browser) {
				c, err := b.transport.DialContext(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(c, tt.sent); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				r := bufio.NewReader(c)
				line, err := r.ReadString('\n')
				if silent := tt.want == "" && strings.HasPrefix(line, "HTTP/1.1 408 "); line != tt.want && !silent {
					t.Errorf("answered %q, %v; want %q", line, err, tt.want)
				}
				if _, err := io.ReadAll(r); err != nil {
					t.Errorf("the connection ends with %v", err)
				}
				if took := time.Since(began); took > tt.within { // in the bubble's time
					t.Errorf("closed after %v, want at most %v", took, tt.within)
				}
				_ = c.Close()
			})
		})
	}
}

// A client that does not read its stream loses it, and its calls end.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	var seen *blocked
	blocking := func() (s *server.Server) {
		s, seen = newBlocking(1)
		return s
	}
	inBubble(t, blocking, server.HTTPOptions{}, func(t *testing.T, b *browser) {
		b.open()
		c, err := b.transport.DialContext(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		body := call(1, "block", `{}`)
		request := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: " + b.session +
			"\r\nTransfer-Encoding: chunked\r\n\r\n" // in one chunk
		request += fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		<-seen.started
		if err := <-seen.ended; !errors.Is(err, server.ErrClientGone) {
			t.Errorf("cause = %v", err)
		}
		_ = c.Close()
	})
}
