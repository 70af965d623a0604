package server_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
)

const (
	// batchInitialize asks for the only revision that has batches.
	batchInitialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	twoPings        = `[` + ping + `,{"jsonrpc":"2.0","id":2,"method":"ping"}]`
	noted           = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	event           = "event: message\ndata: "
)

// openBatching starts a session that may send batches.
func (b *browser) openBatching() {
	b.t.Helper()
	if b.session = b.do("POST /mcp", batchInitialize).header.Get("Mcp-Session-Id"); b.session == "" {
		b.t.Fatal("initialize names no session")
	}
}

func TestHTTPBatch(t *testing.T) {
	t.Parallel()
	url := servertest.Serve(t, newServer(), server.HTTPOptions{})
	batching, other := browse(t, url), browse(t, url)
	batching.openBatching()
	other.open()
	const second = `{"jsonrpc":"2.0","id":2,"result":{}}`
	tests := []struct {
		name    string
		b       *browser
		body    string
		headers []string
		status  int
		want    []string // in the body, in any order
		events  int
	}{
		{"two requests", batching, twoPings, nil, 200, []string{pong, second}, 2},
		{"one request", batching, `[` + ping + `,` + noted + `]`, nil, 200, []string{pong}, 0},
		{"one request, as JSON", batching, `[` + noted + `,` + ping + `]`, []string{"Accept: application/json"}, 200, []string{pong}, 0},
		{"two requests, as JSON", batching, twoPings, []string{"Accept: application/json"}, 406, []string{"text/event-stream"}, 0},
		{"no request", batching, `[` + noted + `,{"jsonrpc":"2.0","id":"rye-9","result":{}}]`, nil, 202, nil, 0},
		{"one is broken", batching, `[7,` + ping + `]`, nil, 200, []string{pong, `"id":null,"error":{"code":-32600`}, 2},
		{"initialize", batching, `[` + batchInitialize + `]`, nil, 200, []string{`"id":0,"error":{"code":-32600`}, 0},
		{"empty", batching, `[]`, nil, 400, []string{"at least one"}, 0},
		{"too many", batching, `[` + strings.Repeat("0,", 100) + `0]`, nil, 400, []string{"at most 100"}, 0},
		{"no session", batching, twoPings, []string{"Mcp-Session-Id"}, 400, []string{"initialize first"}, 0},
		{"other revision", other, twoPings, nil, 400, []string{"batches are not supported"}, 0},
		{"without sessions", other, twoPings, []string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Session-Id"}, 400, []string{"batches are not supported"}, 0},
	}
	// The rows go one after the other: they share a session, and the ids of their requests.
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.b.do("POST /mcp", tt.body, tt.headers...)
			if r.status != tt.status || strings.Count(r.body, event) != tt.events || r.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("answered %d %s", r.status, r.body)
			}
			for _, want := range tt.want {
				if !strings.Contains(r.body, want) {
					t.Errorf("answered %s; want %s", r.body, want)
				}
			}
			if len(tt.want) == 0 && r.body != "" {
				t.Errorf("answered %s", r.body)
			}
		})
	}
}

// A client that goes, and one that cancels, end all calls of their batch.
func TestHTTPBatchEnds(t *testing.T) {
	t.Parallel()
	s, seen := newBlocking(4)
	b := browse(t, servertest.Serve(t, s, server.HTTPOptions{}))
	b.openBatching()
	calls := `[` + call(1, "block", `{}`) + `,` + call(2, "block", `{}`) + `]`

	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		if resp, err := b.send(ctx, "POST /mcp", strings.NewReader(calls)); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-seen.started
	<-seen.started
	leave()
	<-left
	for range 2 {
		if err := <-seen.ended; err != server.ErrClientGone { //nolint:errorlint // the cause itself
			t.Errorf("cause = %v", err)
		}
	}

	answered := make(chan response, 1)
	go func() { answered <- b.do("POST /mcp", calls) }()
	<-seen.started
	<-seen.started
	for _, id := range []string{"1", "2"} {
		b.do("POST /mcp", `[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}]`)
		if err := <-seen.ended; !errors.Is(err, server.ErrRequestCancelled) {
			t.Errorf("cause = %v", err)
		}
	}
	if r := <-answered; r.status != http.StatusOK || r.body != "" {
		t.Errorf("a batch whose calls were all cancelled: %+v", r)
	}
}

func TestSSEBatch(t *testing.T) {
	t.Parallel()
	b := browse(t, servertest.Serve(t, newServer(), server.HTTPOptions{}))
	stream, err := b.send(t.Context(), "GET /sse", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	lines := bufio.NewScanner(stream.Body)
	data := func() string {
		for lines.Scan() {
			if said, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return said + "\n"
			}
		}
		t.Fatalf("the stream ends: %v", lines.Err())
		return ""
	}
	post := "POST " + strings.TrimSpace(data())

	if r := b.do(post, twoPings); r.status != http.StatusBadRequest || !strings.Contains(r.body, "batches are not supported") {
		t.Errorf("before initialize: %+v", r)
	}
	b.do(post, batchInitialize)
	data()
	if r := b.do(post, twoPings); r.status != http.StatusAccepted || r.body != "" {
		t.Errorf("a batch: %+v", r)
	}
	if got := data() + data(); !strings.Contains(got, pong) || !strings.Contains(got, `"id":2,"result":{}`) {
		t.Errorf("answers: %s", got)
	}
}
