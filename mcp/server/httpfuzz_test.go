package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// A post gets an answer of the form that HTTP clients of MCP expect, whatever it has for
// a body and headers, and the session stays.
func FuzzPost(f *testing.F) {
	for _, seed := range messageSeeds {
		f.Add([]byte(seed), "application/json", "application/json, text/event-stream", "2025-11-25", "ping", "", true)
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`),
		"application/json;charset=utf-8", "*/*;q=0.1", "2026-07-28", "tools/call", "=?base64?eA==?=", false)
	s := New(Options{Version: "fuzz"})
	t := newWeb(s, HTTPOptions{})
	f.Cleanup(func() { t.close(context.Background(), ErrClientGone) })
	c, refusal := t.open(f.Context(), false)
	if refusal != nil {
		f.Fatal(refusal.Message)
	}
	c.conn.session.SetProtocolVersion(mcp.ProtocolVersion20250326) // the one with batches
	mux := t.mux()
	f.Fuzz(func(tt *testing.T, body []byte, media, accept, version, method, name string, session bool) {
		if bytes.Contains(body, []byte("initialize")) {
			tt.Skip("would use up the sessions")
		}
		r := httptest.NewRequestWithContext(tt.Context(), http.MethodPost, "/mcp", bytes.NewReader(body))
		for header, value := range map[string]string{
			"Content-Type": media, "Accept": accept, mcp.HeaderProtocolVersion: version, mcp.HeaderMethod: method, mcp.HeaderName: name,
		} {
			r.Header.Set(header, value)
		}
		if session {
			r.Header.Set(mcp.HeaderSessionID, c.key)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		checkAnswer(tt, w)
		if t.enter(c.key, false) == nil {
			tt.Fatal("the session is gone")
		}
		t.leave(tt.Context(), c)
	})
}

// checkAnswer checks that an answer says of what form it is, and has it.
func checkAnswer(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	var messages []string
	switch media := w.Header().Get("Content-Type"); {
	case w.Code >= http.StatusInternalServerError:
		t.Fatalf("status %d: %s", w.Code, w.Body)
	case media == "application/json":
		messages = []string{w.Body.String()}
	case media == "text/event-stream":
		for event := range strings.SplitSeq(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n") {
			if event != "" {
				messages = append(messages, strings.TrimPrefix(event, "event: message\ndata: "))
			}
		}
	case w.Body.Len() > 0:
		t.Fatalf("status %d with %q", w.Code, w.Body)
	}
	for _, message := range messages {
		var m struct {
			JSONRPC string `json:"jsonrpc"`
		}
		if err := json.Unmarshal([]byte(message), &m); err != nil || m.JSONRPC != "2.0" {
			t.Fatalf("status %d: message %q, %v", w.Code, message, err)
		}
	}
}
