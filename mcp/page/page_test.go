package page

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// noProjects is a server without one.
type noProjects struct{}

func (noProjects) List() []Named { return []Named{} }

func (noProjects) Open(context.Context, string) (*Project, error) {
	return nil, tool.Faultf(tool.CodeNoProject, "there is none")
}

// desk is a page in a test, with what it wrote to its log.
type desk struct {
	*Page
	log  *strings.Builder
	time time.Time
}

func newDesk(projects Projects) *desk {
	d := &desk{log: &strings.Builder{}, time: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	d.Page = New(Options{
		Projects: projects, Version: "test", Now: func() time.Time { return d.time }, Log: zerolog.New(d.log), Ended: make(chan struct{}),
	})
	return d
}

// host is where the page of these tests is.
const host = "127.0.0.1:8765"

// ask sends a request; headers are written "Name: value".
func (d *desk) ask(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Host = host
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Del(name)
		if value != "" {
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

// bearer is the header of a token.
func bearer(token string) string { return "Authorization: Bearer " + token }

// codeOf is the code of an answer that is an error.
func codeOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var body struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error.Message == "" {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return body.Error.Code
}

// Origin, token and body, in that order, decide whether a request is admitted.
func TestAdmission(t *testing.T) {
	t.Parallel()
	d := newDesk(noProjects{})
	full, look := bearer(d.Token(false)), bearer(d.Token(true))
	const session, exchange, other = "/ui/api/session", "/ui/api/exchange", "/ui/api/other"
	tests := []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code                     string
	}{
		{"token", "GET", session, "", []string{full}, 200, ""},
		{"other case", "GET", session, "", []string{strings.Replace(full, "Bearer", "bearer", 1)}, 200, ""},
		{"own page", "GET", session, "", []string{full, "Origin: http://" + host, "Sec-Fetch-Site: same-origin"}, 200, ""},
		{"none", "GET", session, "", nil, 401, "page_token"},
		{"wrong", "GET", session, "", []string{full + "x"}, 401, "page_token"},
		{"part", "GET", session, "", []string{full[:len(full)-1]}, 401, "page_token"},
		{"other scheme", "GET", session, "", []string{strings.Replace(full, "Bearer", "Basic", 1)}, 401, "page_token"},
		{"empty", "GET", session, "", []string{"Authorization: Bearer "}, 401, "page_token"},
		{"in a cookie", "GET", session, "", []string{"Cookie: " + full}, 401, "page_token"},
		{"unknown path, no token", "GET", other, "", nil, 401, "page_token"},
		{"unknown path", "GET", other, "", []string{full}, 404, "not_found"},
		{"method", "GET", exchange, "", []string{full}, 404, "not_found"},
		{"PUT", "PUT", session, "", []string{full}, 405, "bad_arguments"},
		{"body of a GET", "GET", session, "{}", []string{full}, 400, "bad_arguments"},
		{"form", "POST", exchange, "code=x", []string{"Content-Type: application/x-www-form-urlencoded"}, 415, "bad_arguments"},
		{"text", "POST", exchange, "{}", []string{"Content-Type: text/plain;application/json"}, 415, "bad_arguments"},
		{"no type", "POST", exchange, "{}", []string{"Content-Type: "}, 415, "bad_arguments"},
		{"two objects", "POST", exchange, `{"code":"a"}{}`, nil, 400, "bad_arguments"},
		{"unknown member", "POST", exchange, `{"code":"a","more":1}`, nil, 400, "bad_arguments"},
		{"no body", "POST", exchange, ``, nil, 400, "bad_arguments"},
		{"much", "POST", exchange, `{"code":"` + strings.Repeat("a", maxBody) + `"}`, nil, 413, "bad_arguments"},
		{"code that nobody made", "POST", exchange, `{"code":"a"}`, nil, 401, "page_token"},
		{"only looks", "GET", session, "", []string{look}, 200, ""},
		{"only looks, posts", "POST", other, "{}", []string{look}, 403, "read_only"},
		{"other port", "GET", session, "", []string{full, "Origin: http://127.0.0.1:9999"}, 403, "page_origin"},
		{"other name", "GET", session, "", []string{full, "Origin: http://localhost:8765"}, 403, "page_origin"},
		{"TLS on the same port", "GET", session, "", []string{full, "Origin: https://" + host}, 403, "page_origin"},
		{"no origin of its own", "GET", session, "", []string{full, "Origin: null"}, 403, "page_origin"},
		{"same site", "GET", session, "", []string{full, "Sec-Fetch-Site: same-site"}, 403, "page_origin"},
		{"other site", "GET", session, "", []string{full, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 403, "page_origin"},
		{"link", "GET", "/", "", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 200, ""},
		{"frame", "GET", "/", "", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, 403, "page_origin"},
		{"script of another page", "GET", "/ui/api.js", "", []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"}, 403, "page_origin"},
		{"preflight", "OPTIONS", session, "", []string{"Origin: http://localhost:3000"}, 403, "page_origin"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := (&desk{Page: d.Page}).ask(tt.method, tt.path, tt.body, tt.headers...)
			if w.Code != tt.status {
				t.Fatalf("status %d, want %d: %s", w.Code, tt.status, w.Body)
			}
			if tt.code != "" {
				if code := codeOf(t, w); code != tt.code {
					t.Errorf("code %s, want %s", code, tt.code)
				}
			}
			for _, name := range []string{"Access-Control-Allow-Origin", "Set-Cookie"} {
				if w.Header().Get(name) != "" {
					t.Errorf("%s: %s", name, w.Header().Get(name))
				}
			}
			if w.Header().Get("Content-Security-Policy") == "" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", w.Header())
			}
		})
	}
}

// A code is good once and for a minute. An exchange after that tells nothing.
func TestCodes(t *testing.T) {
	t.Parallel()
	d := newDesk(noProjects{})
	take := func(code string) (string, int) {
		w := d.ask(http.MethodPost, exchangePath, `{"code":"`+code+`"}`)
		var body struct{ Token string }
		_ = json.Unmarshal(w.Body.Bytes(), &body)
		return body.Token, w.Code
	}
	code := d.Code(true)
	token, status := take(code)
	if status != http.StatusOK || token == "" || token == code {
		t.Fatalf("%d %q", status, token)
	}
	if w := d.ask(http.MethodGet, "/ui/api/session", "", bearer(token)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"read_only":true`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	d.time = d.time.Add(codeLife + time.Second)
	if _, status := take(code); status != http.StatusUnauthorized {
		t.Errorf("an old code: %d", status)
	}
	if w := d.ask(http.MethodGet, "/ui/api/session", "", bearer(token)); w.Code != http.StatusOK {
		t.Errorf("the token of an old code: %d %s", w.Code, w.Body)
	}
	late := d.Code(false)
	d.time = d.time.Add(codeLife + time.Second)
	if _, status := take(late); status != http.StatusUnauthorized {
		t.Errorf("a late code: %d", status)
	}
	if log := d.log.String(); strings.Contains(log, token) || strings.Contains(log, code) {
		t.Errorf("the log has a secret: %s", log)
	}
}

// TestAttackCodeOfTheAddress: a command of a model reads the arguments of the browser and exchanges the code in the address before the page does. The page's own exchange withdraws the token that was given for it, and both are told.
func TestAttackCodeOfTheAddress(t *testing.T) {
	t.Parallel()
	d := newDesk(noProjects{})
	printed := d.Token(false)
	code := d.Code(false)
	w := d.ask(http.MethodPost, exchangePath, `{"code":"`+code+`"}`)
	var stolen struct{ Token string }
	if err := json.Unmarshal(w.Body.Bytes(), &stolen); err != nil || stolen.Token == "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := d.ask(http.MethodPost, exchangePath, `{"code":"`+code+`"}`); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "used twice") {
		t.Errorf("the second exchange: %d %s", w.Code, w.Body)
	}
	if w := d.ask(http.MethodGet, "/ui/api/session", "", bearer(stolen.Token)); w.Code != http.StatusUnauthorized {
		t.Errorf("the stolen token: %d", w.Code)
	}
	if w := d.ask(http.MethodGet, "/ui/api/session", "", bearer(printed)); w.Code != http.StatusOK {
		t.Errorf("the printed token: %d", w.Code)
	}
	if !strings.Contains(d.log.String(), "somebody else has read it") {
		t.Errorf("log %s", d.log)
	}
}

// What a thread sends that would change something is refused, whatever token it has, and a
// code that another user has read.
func TestWhoAsks(t *testing.T) {
	t.Parallel()
	d := newDesk(noProjects{})
	d.client = func(client, server netip.AddrPort) Client {
		return Client{Thread: client.Port() == 4711 && server.Port() == 8765, Another: client.Port() == 4712}
	}
	token, code := d.Token(false), d.Code(false)
	ask := func(port, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8765}),
			http.MethodPost, path, strings.NewReader(`{"code":"`+code+`"}`))
		r.Host, r.RemoteAddr = host, "127.0.0.1:"+port
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		return w
	}
	for _, tt := range []struct {
		who, port, path string
		status          int
	}{
		{"a thread with the code", "4711", exchangePath, http.StatusForbidden},
		{"a thread with the token", "4711", "/ui/api/start", http.StatusForbidden},
		{"another user with the code", "4712", exchangePath, http.StatusForbidden},
		{"a proxy", "4712", "/ui/api/call/none", http.StatusNotFound},
		{"the person", "4713", exchangePath, http.StatusOK},
	} {
		w := ask(tt.port, tt.path)
		if w.Code != tt.status || w.Code == http.StatusForbidden && codeOf(t, w) != "not_a_person" {
			t.Errorf("%s: %d %s", tt.who, w.Code, w.Body)
		}
	}
}

// Files of the page are for everybody; the browser keeps them as long as they are the same.
func TestFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(noProjects{})
	w := d.ask(http.MethodGet, "/ui/api.js", "")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/javascript; charset=utf-8" || w.Header().Get("Cache-Control") != "no-cache" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	if again := d.ask(http.MethodGet, "/ui/api.js", "", "If-None-Match: "+w.Header().Get("Etag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("the same file: %d", again.Code)
	}
	for _, path := range []string{"/", "/ui", "/ui/", "/ui/index.html"} {
		if w := d.ask(http.MethodGet, path, ""); w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	for _, path := range []string{"/ui/none.js", "/ui/../page.go", "/ui/static/api.js", "/ui/%2e%2e/page.go"} {
		if w := d.ask(http.MethodGet, path, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := d.ask(http.MethodPost, "/ui/api.js", "{}"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST of a file: %d", w.Code)
	}
}
