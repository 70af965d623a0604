package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// TestWhyOfEachCall: of two calls that share a connection each is told what came of its own
// request, whatever came of the other's meanwhile.
func TestWhyOfEachCall(t *testing.T) {
	t.Parallel()
	asked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/long":
			_, _ = io.CopyN(w, strings.NewReader(strings.Repeat("x", maxMessage+1)), maxMessage+1)
		}
	}))
	t.Cleanup(asked.Close)
	c := &http.Client{Transport: &bounded{RoundTripper: http.DefaultTransport}}
	ask := func(ctx context.Context, path string) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	busy, long, well := noting(t.Context()), noting(t.Context()), noting(t.Context())
	ask(busy, "/busy")
	ask(long, "/long")
	ask(well, "/well")
	said := errors.New("request failed")
	for want, ctx := range map[string]context.Context{
		"it answers 503 Service Unavailable":   busy,
		errTooLong.Error():                     long,
		"it does not keep to the protocol":     well,
		"it does not keep to the protocol\x00": t.Context(),
	} {
		if got := whyHTTP(ctx, said).Err.Error(); got != strings.TrimSuffix(want, "\x00") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestLines: it is one message that is bounded, not all of them.
func TestLines(t *testing.T) {
	t.Parallel()
	short := strings.Repeat(strings.Repeat("x", 1<<20-1)+"\n", 17)
	for name, tt := range map[string]struct {
		said    string
		tooLong bool
	}{
		"many":            {short, false},
		"of the length":   {"{}\n" + strings.Repeat("x", maxMessage-1) + "\n" + "{}\n", false},
		"one is too long": {short + strings.Repeat("x", maxMessage+1), true},
	} {
		l := &lines{Reader: strings.NewReader(tt.said)}
		n, err := io.Copy(io.Discard, l)
		if err != nil || l.tooLong.Load() != tt.tooLong || !tt.tooLong && n != int64(len(tt.said)) {
			t.Errorf("%s: %d of %d bytes, too long %t, %v", name, n, len(tt.said), l.tooLong.Load(), err)
		}
	}
}

// TestSameHost: a redirect is followed on the host of the server alone, by the same scheme and not
// for ever.
func TestSameHost(t *testing.T) {
	t.Parallel()
	request := func(address string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, tt := range []struct {
		next  string
		hops  int
		wrong string
	}{
		{"https://a.example/other", 1, ""},
		{"https://a.example/other", 5, ""},
		{"https://a.example/other", 6, "again and again"},
		{"http://a.example/mcp", 1, "redirects to a.example"},
		{"https://b.example/mcp", 1, "redirects to b.example"},
		{"https://a.example:444/mcp", 1, "redirects to a.example:444"},
	} {
		via := slices.Repeat([]*http.Request{request("https://a.example/mcp")}, tt.hops)
		if err := sameHost(request(tt.next), via); (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s after %d: %v", tt.next, tt.hops, err)
		}
	}
}

// TestTooManyTools: a server offers no more tools than anybody can look through.
func TestTooManyTools(t *testing.T) {
	t.Parallel()
	for offered, wrong := range map[int]bool{maxTools: false, maxTools + 1: true} {
		many := server.NewMCPServer("many", "1", server.WithToolCapabilities(true))
		for i := range offered {
			many.AddTool(mcp.NewTool(fmt.Sprint("tool", i)), nil)
		}
		got, err := connections(t).Tools(t.Context(), web(t, server.NewStreamableHTTPServer(many)))
		if wrong != (err != nil && strings.Contains(err.Error(), "more than 1000 tools")) || !wrong && len(got) != offered {
			t.Errorf("%d offered: %d, %v", offered, len(got), err)
		}
	}
}
