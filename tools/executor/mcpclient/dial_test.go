package mcpclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWhyOfEachCall: of two calls that share a connection each is told what came of its own
// request, whatever came of the other's meanwhile.
func TestWhyOfEachCall(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/long":
			_, _ = io.CopyN(w, strings.NewReader(strings.Repeat("x", maxMessage+1)), maxMessage+1)
		}
	}))
	t.Cleanup(server.Close)
	c := &http.Client{Transport: &bounded{RoundTripper: http.DefaultTransport}}
	ask := func(ctx context.Context, path string) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
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
