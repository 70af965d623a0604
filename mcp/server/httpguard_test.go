package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The guard lets a request in by where the server listens and what the request says.
func TestGuard(t *testing.T) {
	t.Parallel()
	const token = "correct-horse-battery"
	passed := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	bearer := header("Authorization", "Bearer "+token)
	open := HTTPOptions{}
	named := HTTPOptions{Hosts: []string{"Build.example.org"}, Origins: []string{"https://App.example.org/"}}
	locked := HTTPOptions{Token: token}
	tests := []struct {
		name   string
		local  bool // listens on loopback
		opts   HTTPOptions
		host   string
		header http.Header
		want   int
	}{
		{"address", true, open, "127.0.0.1:8765", nil, 200},
		{"other loopback address", true, open, "127.8.9.1", nil, 200},
		{"IPv6", true, open, "[::1]:8765", nil, 200},
		{"bare IPv6", true, open, "[::1]", nil, 200},
		{"localhost", true, open, "LOCALHOST.:1", nil, 200},
		{"rebound name", true, open, "evil.example.com:8765", nil, 403},
		{"name that ends well", true, open, "evil-localhost", nil, 403},
		{"network address", true, open, "192.168.1.2", nil, 403},
		{"no host", true, open, "", nil, 403},
		{"allowed name", true, named, "build.example.org:8765", nil, 200},
		{"network address, open server", false, open, "192.168.1.2:8765", nil, 200},
		{"name, open server", false, open, "build.example.org", nil, 403},
		{"allowed name, open server", false, named, "BUILD.example.org", nil, 200},

		{"own page", true, open, "localhost:8765", header("Origin", "http://localhost:8765"), 200},
		{"own page by another name", true, open, "localhost:8765", header("Origin", "http://127.0.0.1:8765"), 200},
		{"own page without a port", true, open, "localhost", header("Origin", "http://127.0.0.1"), 200},
		{"own page, open server", false, open, "localhost:8765", header("Origin", "http://localhost:8765"), 403},
		{"page of another port", true, open, "localhost:8765", header("Origin", "http://localhost:3000"), 403},
		{"page of another scheme", true, open, "localhost:8765", header("Origin", "https://localhost:8765"), 403},
		{"page of another port, allowed", true, HTTPOptions{Origins: []string{"http://localhost:3000"}}, "localhost:8765", header("Origin", "http://localhost:3000"), 200},
		{"foreign page", true, open, "localhost", header("Origin", "http://evil.example.com"), 403},
		{"foreign page that looks local", true, open, "localhost", header("Origin", "http://localhost.evil.example.com"), 403},
		{"page with a user", true, open, "localhost", header("Origin", "http://localhost@evil.example.com"), 403},
		{"page with a path", true, open, "localhost", header("Origin", "http://localhost/x"), 403},
		{"file", true, open, "localhost", header("Origin", "null"), 403},
		{"file by URL", true, open, "localhost", header("Origin", "file://localhost"), 403},
		{"empty", true, open, "localhost", header("Origin", ""), 403},
		{"two origins", true, open, "localhost", header("Origin", "http://localhost", "Origin", "http://localhost"), 403},
		{"allowed page", true, named, "localhost", header("Origin", "https://app.example.org"), 200},
		{"allowed page, other port", true, named, "localhost", header("Origin", "https://app.example.org:1"), 403},
		{"allowed page, open server", false, named, "10.0.0.1", header("Origin", "https://app.example.org"), 200},

		{"token", true, locked, "localhost", bearer, 200},
		{"token, other case", true, locked, "localhost", header("Authorization", "bearer  "+token), 200},
		{"no token", true, locked, "localhost", nil, 401},
		{"wrong token", true, locked, "localhost", header("Authorization", "Bearer "+token+"x"), 401},
		{"part of the token", true, locked, "localhost", header("Authorization", "Bearer "+token[:8]), 401},
		{"other scheme", true, locked, "localhost", header("Authorization", "Basic "+token), 401},
		{"token alone", true, locked, "localhost", header("Authorization", token), 401},
		{"token of a foreign page", true, locked, "localhost", header("Authorization", "Bearer "+token, "Origin", "http://evil.example.com"), 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/mcp", http.NoBody)
			r.Host, r.Header = tt.host, tt.header
			w := httptest.NewRecorder()
			newGuard(New(Options{}), tt.local, tt.opts, passed).ServeHTTP(w, r)
			if w.Code != tt.want {
				t.Errorf("status %d, want %d: %s", w.Code, tt.want, w.Body)
			}
			if (w.Header().Get("Www-Authenticate") != "") != (tt.want == http.StatusUnauthorized) {
				t.Errorf("WWW-Authenticate %q with status %d", w.Header().Get("Www-Authenticate"), w.Code)
			}
			if shared := w.Header().Get("Access-Control-Allow-Origin"); w.Code == http.StatusForbidden && shared != "" {
				t.Errorf("a refused page may read: %s", shared)
			}
		})
	}
}

// A browser asks before a page may send JSON; it does not send the token then.
func TestGuardAnswersPreflight(t *testing.T) {
	t.Parallel()
	g := newGuard(New(Options{}), true, HTTPOptions{Token: "correct-horse-battery"}, http.NotFoundHandler())
	for origin, want := range map[string]int{"http://localhost": http.StatusNoContent, "http://localhost:6274": http.StatusForbidden, "http://evil.example.com": http.StatusForbidden} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodOptions, "/mcp", http.NoBody)
		r.Host = "localhost"
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != want || (w.Header().Get("Access-Control-Allow-Headers") != "") != (want == http.StatusNoContent) {
			t.Errorf("%s: %d %v", origin, w.Code, w.Header())
		}
	}
}

// Health is for whoever has no token.
func TestHealthNeedsNoToken(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	g := newGuard(s, true, HTTPOptions{Token: "correct-horse-battery"}, newWeb(s, HTTPOptions{}).mux())
	for path, want := range map[string]int{"/healthz": 200, "/healthz/": 401, "/mcp": 401, "/sse": 401, "/message": 401, "/": 401} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, http.NoBody)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}

// The page looks after tokens and origins itself, and after nobody else's paths.
func TestGuardLeavesThePage(t *testing.T) {
	t.Parallel()
	const page = http.StatusTeapot
	opts := HTTPOptions{
		Token: "correct-horse-battery", IsPage: func(path string) bool { return path == "/" || strings.HasPrefix(path, "/ui/") },
		Page: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(page) }),
	}
	only := opts
	only.PageOnly, only.Handlers = true, map[string]http.Handler{"GET /metrics": http.NotFoundHandler()}
	s := New(Options{})
	for _, tt := range []struct {
		name, host, path, origin string
		opts                     HTTPOptions
		want                     int
	}{
		{"the page", "localhost", "/", "", opts, page},
		{"its files", "localhost", "/ui/app.js", "", opts, page},
		{"its own affair", "localhost", "/ui/api/board", "http://evil.example.com", opts, page},
		{"MCP", "localhost", "/mcp", "", opts, http.StatusUnauthorized},
		{"MCP by way of the page", "localhost", "/ui/../mcp", "", opts, page},
		{"health", "localhost", "/healthz", "", opts, http.StatusOK},
		{"rebound name", "evil.example.com", "/", "", opts, http.StatusForbidden},
		{"rebound name, API", "evil.example.com:8765", "/ui/api/session", "", opts, http.StatusForbidden},
		{"the page alone", "localhost", "/ui/app.js", "", only, page},
		{"the page alone, MCP", "localhost", "/mcp", "", only, http.StatusNotFound},
		{"the page alone, SSE", "localhost", "/sse", "", only, http.StatusNotFound},
		{"the page alone, a further path", "localhost", "/metrics", "", only, http.StatusUnauthorized},
		{"the page alone, health", "localhost", "/healthz", "", only, http.StatusOK},
	} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, tt.path, http.NoBody)
		r.Host = tt.host
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		w := httptest.NewRecorder()
		newGuard(s, true, tt.opts, newWeb(s, tt.opts).mux()).ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s: %d, want %d: %s", tt.name, w.Code, tt.want, w.Body)
		}
	}
}
