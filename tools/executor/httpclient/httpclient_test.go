package httpclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/netguard"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// plan is that of a tool with this configuration, as YAML or JSON gives it.
func plan(t *testing.T, config string, params map[string]any) *chain.Plan {
	t.Helper()
	p := &chain.Plan{Chain: &chain.Chain{Elements: []chain.Element{{
		Found: &resolve.Found{Entry: resolve.Entry{Kind: item.Tool, ID: "test/http"}},
	}}}}
	if err := json.Unmarshal([]byte(config), &p.Config); err != nil {
		t.Fatal(err)
	}
	return p.Given(func(name string) (string, bool) { return map[string]string{"KEY": "s3cret"}[name], name == "KEY" }, params)
}

// refusing is where requests go whose address the caller names.
type refusing struct{}

var errPrivate = errors.New("a private address")

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errPrivate }

func newClient() *Client { return New(http.DefaultTransport, refusing{}) }

// mirror answers with what it was sent.
func mirror(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "uri": r.RequestURI, "auth": r.Header.Get("Authorization"), "key": r.Header.Get("X-API-Key"),
			"type": r.Header.Get("Content-Type"), "named": r.Header.Get("X-Named"), "body": string(body),
		})
	}))
	t.Cleanup(s.Close)
	return s
}

func TestRequests(t *testing.T) {
	t.Parallel()
	s := mirror(t)
	params := map[string]any{"q": `a "b"&c=d/../e`, "n": 3, "list": []any{"x"}, "dots": "..", "none": nil, "gone": chain.Absent{}}
	for name, test := range map[string]struct{ config, want string }{
		"least":           {`{"url":"SERVER/a"}`, `{"method":"GET","uri":"/a"}`},
		"path and query":  {`{"url":"SERVER/{q}/x?n={n}&q={q}"}`, `{"uri":"/a%20%22b%22&c=d%2F..%2Fe/x?n=3&q=a+%22b%22%26c%3Dd%2F..%2Fe"}`},
		"no path":         {`{"url":"SERVER?n={n}&q={q}"}`, `{"uri":"/?n=3&q=a+%22b%22%26c%3Dd%2F..%2Fe"}`},
		"no path, bearer": {`{"url":"SERVER?q={q}","auth":{"type":"bearer","token":"${KEY}"}}`, `{"uri":"/?q=a+%22b%22%26c%3Dd%2F..%2Fe","auth":"Bearer s3cret"}`},
		"a fragment":      {`{"url":"SERVER/a#{q}?{q}"}`, `{"uri":"/a"}`},
		"dots":            {`{"url":"SERVER/a/{dots}/b"}`, `{"uri":"/a/%2E%2E/b"}`},
		"query map":       {`{"url":"SERVER/a?z=1","query":{"q":"{n}","empty":"{none}"}}`, `{"uri":"/a?q=3&z=1"}`},
		"absent":          {`{"url":"SERVER/a?x={gone}&q={n}&t=a{gone}","query":{"y":"{gone}"},"headers":{"X-Named":"{gone}"}}`, `{"uri":"/a?q=3&t=a","named":""}`},
		"absent in JSON":  {`{"url":"SERVER/a","method":"POST","body":{"n":"{n}","gone":"{gone}","null":"{none}","text":"a {gone}"}}`, `{"body":"{\"n\":3,\"null\":null,\"text\":\"a \"}"}`},
		"absent in form":  {`{"url":"SERVER/a","method":"POST","headers":{"Content-Type":"application/x-www-form-urlencoded"},"body":"q={n}&gone={gone}"}`, `{"body":"q=3"}`},
		"bearer":          {`{"url":"SERVER/a","auth":{"type":"bearer","token":"${KEY}"}}`, `{"auth":"Bearer s3cret"}`},
		"api key":         {`{"url":"SERVER/a","auth":{"type":"api_key","key":"${KEY}"}}`, `{"key":"s3cret"}`},
		"api key, header": {`{"url":"SERVER/a","auth":{"type":"api_key","key":"${KEY}","header":"X-Named"}}`, `{"named":"s3cret"}`},
		"object":          {`{"url":"SERVER/a","method":"post","body":{"n":"{n}","list":"{list}","text":"n is {n}","unknown":"{x}"}}`, `{"method":"POST","type":"application/json","body":"{\"list\":[\"x\"],\"n\":3,\"text\":\"n is 3\",\"unknown\":\"{x}\"}"}`},
		"text of JSON":    {`{"url":"SERVER/a","method":"PUT","body":"{\"q\":\"{q}\"}"}`, `{"type":"application/json","body":"{\"q\":\"a \\\"b\\\"\\u0026c=d/../e\"}"}`},
		"form":            {`{"url":"SERVER/a","method":"POST","headers":{"Content-Type":"application/x-www-form-urlencoded"},"body":"q={q}"}`, `{"body":"q=a+%22b%22%26c%3Dd%2F..%2Fe"}`},
		"text":            {`{"url":"SERVER/a","method":"POST","body":"n: {n}"}`, `{"type":"text/plain; charset=utf-8","body":"n: 3"}`},
		"text in braces":  {`{"url":"SERVER/a","method":"POST","headers":{"Content-Type":"text/plain"},"body":"{q} [x]"}`, `{"type":"text/plain","body":"a \"b\"&c=d/../e [x]"}`},
		"empty text":      {`{"url":"SERVER/a","method":"POST","body":"  "}`, `{"type":"text/plain; charset=utf-8","body":"  "}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newClient().Run(t.Context(), plan(t, strings.ReplaceAll(test.config, "SERVER", s.URL), params))
			if err != nil {
				t.Fatal(err)
			}
			var sent, want map[string]string
			if err := errors.Join(json.Unmarshal(got.(*Result).Body.(json.RawMessage), &sent), json.Unmarshal([]byte(test.want), &want)); err != nil {
				t.Fatal(err)
			}
			for key, value := range want {
				if sent[key] != value {
					t.Errorf("%s: %q, want %q", key, sent[key], value)
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{}`:                                 "names no url",
		`{"url":"http://h","method":"BREW"}`: "method BREW is none of",
		`{"url":"ftp://h"}`:                  "not one of http or https",
		`{"url":"http://h","retry":{"max_attempts":11}}`: "at most 10",
		`{"url":"http://h","retry":{"backoff":"never"}}`: "neither exponential nor linear",
		`{"url":"http://h","auth":{"type":"password"}}`:  "neither {type: bearer",
		`{"url":"http://h","headers":{"X":"{lines}"}}`:   "a line break",
		`{"url":7}`: "its config",
		`{"url":"http://h/?k=${KEY}","method":"GET"}`: "",
		`{"url":"{url}"}`:                                          "a private address",
		`{"url":"http://{host}/a"}`:                                "a private address",
		`{"url":"http://{host}/a?k=${KEY}"}`:                       "which host they go to",
		`{"url":"HTTP://{host}/a?k=${KEY}"}`:                       "which host they go to",
		`{"url":"http://{host}?k=${KEY}"}`:                         "which host they go to",
		`{"url":"http://{host}#${KEY}"}`:                           "which host they go to",
		`{"url":"{url}://h/?k=${KEY}"}`:                            "which host they go to",
		`{"url":"{url}","body":"${KEY}","method":"POST"}`:          "which host they go to",
		`{"url":"{url}","auth":{"type":"bearer","token":"fixed"}}`: "which host they go to",
	} {
		p := plan(t, config, map[string]any{"lines": "a\r\nb", "url": "http://h/x", "host": "h"})
		if want == "" {
			if _, err := newRequest(p); err != nil {
				t.Errorf("%s: %v", config, err)
			}
			continue
		}
		_, err := newClient().Run(t.Context(), p)
		if f := tool.AsFault(err); f == nil || !strings.Contains(f.Message, want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}

// What is wrong with a configuration is told before any call.
func TestCheck(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]struct{ note, fault string }{
		`{"url":"http://h","metod":"POST"}`:                             {note: "config.metod of test/http means nothing to an HTTP tool; did you mean method?"},
		`{"url":"http://h","retry":{"attempts":3}}`:                     {note: "config.retry.attempts of test/http means nothing to an HTTP tool; there are max_attempts, backoff"},
		`{"url":"http://h","auth":{"type":"bearer","token":"t","x":1}}`: {note: "config.auth.x"},
		`{"url":"http://{base}/","base":"h"}`:                           {},
		`{"url":"http://h","method":"FETCH"}`:                           {fault: "its method FETCH is none of GET"},
		`{"url":"http://h","retry":{"backoff":0.1}}`:                    {fault: "a number as retry.backoff, which must be exponential or linear"},
		`{"url":"http://h","retry":{"max_attempts":"3"}}`:               {fault: "a string as retry.max_attempts, which must be a whole number"},
		`{"url":"http://h","headers":{"X":5}}`:                          {fault: "a number as headers"},
		`{"url":"http://h","auth":"key"}`:                               {fault: "a string as auth, which must be a mapping"},
	} {
		p := plan(t, config, nil)
		p.Chain.Config = p.Config
		notes, err := newClient().Check(p.Chain)
		if f := tool.AsFault(err); (f != nil) != (want.fault != "") || f != nil && !strings.Contains(f.Message, want.fault) {
			t.Errorf("%s: %v, want %q", config, err, want.fault)
		}
		if text := strings.Join(notes, "\n"); (text == "") != (want.note == "") || !strings.Contains(text, want.note) {
			t.Errorf("%s: noted %q, want %q", config, text, want.note)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/text":
			_, _ = io.WriteString(w, "words")
		case "/binary":
			_, _ = w.Write([]byte{0xff, 0xfe, 0})
		case "/not-json":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{")
		case "/error":
			w.Header().Set("X-RateLimit-Remaining", "0")
			http.Error(w, `no`, http.StatusTeapot)
		}
	}))
	t.Cleanup(s.Close)
	run := func(path string) (*Result, error) {
		got, err := newClient().Run(t.Context(), plan(t, `{"url":"`+s.URL+path+`"}`, nil))
		r, _ := got.(*Result)
		return r, err
	}
	if r, err := run("/text"); err != nil || r.Body != "words" || r.Status != 200 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := run("/binary"); err != nil || r.Body != nil || r.Length != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := run("/not-json"); err != nil || r.Body != "{" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := run("/empty"); err != nil || r.Body != nil || r.Length != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	_, err := run("/error")
	f := tool.AsFault(err)
	if f == nil || f.Code != tool.CodeToolFailed || f.Details["status"] != 418 || f.Details["body"] != "no\n" || f.Details["headers"].(map[string]string)["X-Ratelimit-Remaining"] != "0" {
		t.Errorf("%+v", f)
	}
}

// TestPace: the server's word counts, up to a bound; without one waits grow as the tool says.
func TestPace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		backoff, after string
		want           []time.Duration
	}{
		"exponential":       {"exponential", "", []time.Duration{firstWait, 2 * firstWait, 4 * firstWait}},
		"linear":            {"linear", "", []time.Duration{firstWait, 2 * firstWait, 3 * firstWait}},
		"the server's":      {"exponential", "7", []time.Duration{7 * time.Second, 7 * time.Second, 7 * time.Second}},
		"at once":           {"linear", "0", []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}},
		"too long":          {"linear", "86400", []time.Duration{longestWait, longestWait, longestWait}},
		"until a date":      {"linear", "Fri, 31 Dec 9999 23:59:59 GMT", []time.Duration{longestWait, longestWait}},
		"before now":        {"linear", "-3", []time.Duration{firstWait, 2 * firstWait, 3 * firstWait}},
		"no number of ours": {"linear", "Fri, 31 Dec 1999 23:59:59 GMT", []time.Duration{firstWait, 2 * firstWait, 3 * firstWait}},
	} {
		pace := retries{MaxAttempts: len(test.want) + 1, Backoff: test.backoff}.pace(&answer{header: http.Header{"Retry-After": {test.after}}})
		for i, want := range test.want {
			if got, stop := pace.Next(); got != want || stop {
				t.Errorf("%s, wait %d: %v, %t, want %v", name, i, got, stop, want)
			}
		}
		if _, stop := pace.Next(); !stop {
			t.Errorf("%s: it goes on", name)
		}
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config string
		status int
		calls  int32
	}{
		"get":                   {`{"url":"SERVER","retry":{"max_attempts":3}}`, 503, 3},
		"not declared":          {`{"url":"SERVER"}`, 503, 1},
		"no use":                {`{"url":"SERVER","retry":{"max_attempts":3}}`, 404, 1},
		"post, perhaps done":    {`{"url":"SERVER","method":"POST","retry":{"max_attempts":3}}`, 502, 1},
		"post, not done":        {`{"url":"SERVER","method":"POST","body":{},"retry":{"max_attempts":2,"backoff":"linear"}}`, 429, 2},
		"get, gateway time-out": {`{"url":"SERVER","retry":{"max_attempts":2}}`, 504, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(test.status)
			}))
			t.Cleanup(s.Close)
			_, err := newClient().Run(t.Context(), plan(t, strings.ReplaceAll(test.config, "SERVER", s.URL), nil))
			if f := tool.AsFault(err); f == nil || f.Details["status"] != test.status || calls.Load() != test.calls {
				t.Errorf("%d calls, want %d: %v", calls.Load(), test.calls, err)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(s.Close)
	p := plan(t, `{"url":"`+s.URL+`","retry":{"max_attempts":9}}`, nil)
	p.Timeout = 50 * time.Millisecond
	_, err := newClient().Run(t.Context(), p)
	if f := tool.AsFault(err); f == nil || f.Code != tool.CodeTimeout {
		t.Error(err)
	}
}

// TestAttackHTTPRedirect: a server redirects to another host. The request goes there without the credentials of the tool, and no body is sent on.
func TestAttackHTTPRedirect(t *testing.T) {
	t.Parallel()
	elsewhere := mirror(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/there", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(s.Close)
	c := New(http.DefaultTransport, http.DefaultTransport)
	got, err := c.Run(t.Context(), plan(t, `{"url":"`+s.URL+`","auth":{"type":"api_key","key":"${KEY}"},"headers":{"Authorization":"fixed","X-Named":"${KEY}"}}`, nil))
	if err != nil {
		t.Fatal(err)
	}
	body := string(got.(*Result).Body.(json.RawMessage))
	if !strings.Contains(body, "/there") || strings.Contains(body, "s3cret") || strings.Contains(body, "fixed") {
		t.Error(body)
	}
	_, err = c.Run(t.Context(), plan(t, `{"url":"`+s.URL+`","method":"POST","body":"${KEY}","retry":{"max_attempts":3}}`, nil))
	if !errors.Is(err, errRedirect) {
		t.Error(err)
	}
}

// TestAttackHTTPRedirectInward: a server redirects to this machine, where the cloud's credentials or a service of the person's are. The host is chosen by it, not by the tool, and is not connected to.
func TestAttackHTTPRedirectInward(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(inside.Close)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/out":
			http.Redirect(w, r, inside.URL+"/latest/meta-data/iam", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/out", http.StatusFound)
		case "/moved":
			http.Redirect(w, r, "/here", http.StatusFound)
		}
	}))
	t.Cleanup(s.Close)
	c := New(http.DefaultTransport, netguard.New(netguard.Settings{}, nil).Transport())
	for path, refused := range map[string]bool{"/out": true, "/round": true, "/moved": false, "/here": false} {
		_, err := c.Run(t.Context(), plan(t, `{"url":"`+s.URL+path+`"}`, nil))
		if _, private := errors.AsType[*netguard.PrivateError](err); private != refused || !refused && err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("reached %d times", n)
	}
}

// hops answers what goes to an address with a redirect to the next one, and notes what came.
type hops struct {
	next map[string]string
	came map[string]http.Header
}

func (h hops) RoundTrip(r *http.Request) (*http.Response, error) {
	h.came[r.URL.String()] = r.Header
	w := httptest.NewRecorder()
	if next := h.next[r.URL.String()]; next != "" {
		w.Header().Set("Location", next)
		w.WriteHeader(http.StatusFound)
	}
	return w.Result(), nil
}

// TestAttackHTTPRedirectScheme: a server redirects to its own name without encryption, or to another host, from an address that holds a key. Neither the key of the tool nor the address goes along.
func TestAttackHTTPRedirectScheme(t *testing.T) {
	t.Parallel()
	for from, to := range map[string]string{
		"https://api.example.com/a": "http://api.example.com/a",
		"http://api.example.com/a":  "http://other.example.com/a",
		"http://api.example.com/b":  "http://api.example.com:8080/b",
	} {
		own, others := hops{map[string]string{from + "?k=s3cret": to}, map[string]http.Header{}}, hops{nil, map[string]http.Header{}}
		_, err := New(own, others).Run(t.Context(), plan(t, `{"url":"`+from+`?k=${KEY}","headers":{"X-API-Key":"${KEY}"}}`, nil))
		if err != nil || own.came[from+"?k=s3cret"].Get("X-API-Key") != "s3cret" || len(own.came) != 1 {
			t.Errorf("%s: %v, %v", from, own.came, err)
		}
		header, came := others.came[to]
		if said := fmt.Sprint(header); !came || strings.Contains(said, "s3cret") {
			t.Errorf("%s: came with %s", to, said)
		}
	}
}

// TestAttackHTTPFlood: a server answers without end. Reading it is bounded, and the tool has failed.
func TestAttackHTTPFlood(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	if _, err := newClient().Run(t.Context(), plan(t, `{"url":"`+s.URL+`"}`, nil)); !errors.Is(err, errTooLong) {
		t.Error(err)
	}
}

// TestErrorsHideTheAddress shows that an address with a key in it is not repeated.
func TestErrorsHideTheAddress(t *testing.T) {
	t.Parallel()
	_, err := newClient().Run(t.Context(), plan(t, `{"url":"http://127.0.0.1:1/?k=${KEY}"}`, nil))
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}
