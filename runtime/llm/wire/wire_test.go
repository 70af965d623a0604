package wire

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseError(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, body string
		want       llm.APIError
	}{
		{"Anthropic", `{"type":"error","error":{"type":"rate_limit_error","message":"slow"},"request_id":"r"}`,
			llm.APIError{Type: "rate_limit_error", Message: "slow"}},
		{"OpenAI", `{"error":{"message":"no money","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
			llm.APIError{Type: "insufficient_quota", Code: "insufficient_quota", Message: "no money"}},
		{"Google", `[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]`,
			llm.APIError{Status: 400, Type: "INVALID_ARGUMENT", Code: "400", Message: "bad"}},
		{"OpenRouter", `{"error":{"code":402,"message":"pay","metadata":{}}}`, llm.APIError{Status: 402, Code: "402", Message: "pay"}},
		{"Ollama", `{"error":"model not found"}`, llm.APIError{Message: "model not found"}},
		{"wrapped once more", `{"error":{"error":{"type":"t","message":"m"}}}`, llm.APIError{Type: "t", Message: "m"}},
		{"several", `{"errors":[{"code":"c","message":"m"},{"message":"n"}]}`, llm.APIError{Code: "c", Message: "m"}},
		{"AWS", `{"Message":"m"}`, llm.APIError{Message: "m"}},
		{"message", `{"message":"m"}`, llm.APIError{Message: "m"}},
		{"detail", `{"detail":"Not Found"}`, llm.APIError{Message: "Not Found"}},
		{"odd types", `{"error":{"type":5,"code":{},"message":"m"}}`, llm.APIError{Message: "m"}},
		{"another object", `{"a":1}`, llm.APIError{Message: `{"a":1}`}},
		{"text", " upstream\n down\x00 ", llm.APIError{Message: "upstream down"}},
		{"empty", "", llm.APIError{}},
		{"page", "<!DOCTYPE html><html><head><title>\n502 Bad Gateway </title></head>…",
			llm.APIError{Message: `the answer is a web page titled "502 Bad Gateway"`}},
		{"page without title", "<html>x", llm.APIError{Message: "the answer is a web page"}},
	} {
		if got := parseError([]byte(test.body)); !reflect.DeepEqual(*got, test.want) {
			t.Errorf("%s: got %+v, want %+v", test.name, *got, test.want)
		}
	}
}

func FuzzParseError(f *testing.F) {
	f.Add([]byte(`{"error":{"type":"t","code":1e400,"message":"m"}}`))
	f.Add([]byte(`[{"error":null}]`))
	f.Add([]byte("<html><title>\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		e := parseError(body)
		if len(e.Message) > maxMessage+len("…") || !utf8.ValidString(e.Message) || strings.ContainsAny(e.Message, "\n\x00") {
			t.Errorf("message %q", e.Message)
		}
	})
}

func TestStreamErrorStatus(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]int{
		"overloaded_error": 529, "rate_limit_error": 429, "api_error": 500, "authentication_error": 401,
		"invalid_request_error": 400, "never_heard_of": 500, "": 500,
	} {
		_, call := Config{}.Begin(context.Background())
		var got *llm.APIError
		if !errors.As(call.StreamError(fmt.Appendf(nil, `{"error":{"type":%q}}`, typ)), &got) || got.Status != want {
			t.Errorf("%s: got %+v, want %d", typ, got, want)
		}
		call.End()
	}
}

func TestSentBack(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "{}", " ": "{}", ` {"a":1} `: `{"a":1}`, `{"a":`: `{"invalid_json":"{\"a\":"}`, `[1]`: `{"invalid_json":"[1]"}`,
		`{"a":"x\ud83d"}`: `{"a":"x\ufffd"}`, `{"a":"\ude00\ud83d\ud83d\ude00"}`: `{"a":"\ufffd\ufffd\ud83d\ude00"}`,
		`{"a":"\\ud83d"}`: `{"a":"\\ud83d"}`, `{"a":"\\\ud83d\n"}`: `{"a":"\\\ufffd\n"}`, `{"a":"\uD83Dx\uDE00"}`: `{"a":"\ufffdx\ufffd"}`,
		"{\"a\":\"\xff\"}": "{\"a\":\"\ufffd\"}", `{"\ud83d":`: `{"invalid_json":"{\"\\ud83d\":"}`,
	} {
		if got := string(SentBack([]byte(in))); got != want {
			t.Errorf("SentBack(%q) = %s, want %s", in, got, want)
		}
	}
}

// TestSentBackUnchanged: what was sent back is not changed itself, and what is sound is
// sent as it is.
func TestSentBackUnchanged(t *testing.T) {
	t.Parallel()
	input := []byte(`{"a":"\ud83d"}`)
	if SentBack(input); string(input) != `{"a":"\ud83d"}` {
		t.Errorf("changed to %s", input)
	}
	rapid.Check(t, func(t *rapid.T) {
		sound, err := json.Marshal(map[string]string{rapid.String().Draw(t, "key"): rapid.String().Draw(t, "value")})
		if err != nil {
			t.Fatal(err)
		}
		ascii := strconv.QuoteToASCII(rapid.String().Draw(t, "text")) // escapes in other places
		for _, text := range []string{string(sound), `{"a":` + ascii + `}`} {
			if json.Valid([]byte(text)) && string(SentBack([]byte(text))) != text {
				t.Errorf("%s becomes %s", text, SentBack([]byte(text)))
			}
		}
		if raw := rapid.SliceOf(rapid.Byte()).Draw(t, "raw"); !json.Valid(SentBack(raw)) || !utf8.Valid(SentBack(raw)) {
			t.Errorf("%q becomes %q", raw, SentBack(raw))
		}
	})
}

func TestSentName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"rye_bash": "rye_bash", "mcp-x-Odd9": "mcp-x-Odd9", "multi_tool_use.parallel": "multi_tool_use_parallel", "functions.read": "functions_read",
		"": "_", "a b/c": "a_b_c", "é": "__", "@[`{": "____", strings.Repeat("x", 99): strings.Repeat("x", 64),
	} {
		if got := SentName(name); got != want {
			t.Errorf("SentName(%q) = %q, want %q", name, got, want)
		}
	}
}

// exchange sends one request to a handler and returns its failure.
func exchange(t *testing.T, cfg Config, handler http.HandlerFunc) *llm.APIError {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	cfg.HTTPClient = &http.Client{Transport: transport}
	ctx, call := cfg.Begin(context.Background())
	defer call.End()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := call.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if err == nil {
		return nil
	}
	var failure *llm.APIError
	if !errors.As(call.Fail(context.Background(), err), &failure) {
		t.Fatalf("got %v", err)
	}
	return failure
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	const key = "sk-secret"
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		status  int
		says    string
	}{
		{"empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, 503, "Service Unavailable"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/"+key, http.StatusFound)
		}, 302, "set base_url"},
		{"a page where an answer should be", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<html><title>Log in</title>")
		}, 200, `titled "Log in"`},
		{"an error that calls itself a success", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"error":{"type":"rate_limit_error","message":"slow"}}`)
		}, 429, "slow"},
		{"one that only has a code", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"error":{"code":429,"message":"slow upstream"}}`)
		}, 429, "slow upstream"},
		{"an answer in one piece", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = io.WriteString(w, `{"error":null,"choices":[{"message":{"content":"no such billing"}}]}`)
		}, 200, "in one piece instead of a stream of events; have the gateway at base_url stream"},
		{"the beginning of a long one", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"type":"message","content":[{"type":"text","text":"`+strings.Repeat("x", maxErrorBody))
		}, 200, "in one piece"},
		{"JSON without an answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{}`)
		}, 200, "application/json instead of a stream of events: {}"},
		{"an error of an unknown type that calls itself a success", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"error":{"type":"odd","message":"not today"}}`)
		}, 500, "not today"},
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, 204, "No Content"},
		{"endless", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for range 100 {
				_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
			}
		}, 500, "xxx…"},
		{"key", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, strings.Repeat("x", maxMessage-5)+key)
		}, 401, "xxx"},
		{"header", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, "bad "+r.Header.Get("X-Token"))
		}, 401, "bad [redacted]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{APIKey: key, Headers: map[string]string{"X-Token": "Bearer tok-secret"}}
			got := exchange(t, cfg, test.handler)
			if got == nil || got.Status != test.status || !strings.Contains(got.Message, test.says) {
				t.Fatalf("got %+v", got)
			}
			if strings.Contains(got.Error(), key[:5]) || len(got.Message) > maxMessage+len("…") {
				t.Errorf("message %q", got.Message)
			}
		})
	}
}

// TestAddressWithPassword: what an address holds to identify the user is told in
// no form, whether the connection fails or the provider quotes what it was sent.
func TestAddressWithPassword(t *testing.T) {
	t.Parallel()
	const password, escaped = "pass/word-secret", "pass%2Fword-secret"
	basic := base64.StdEncoding.EncodeToString([]byte("me:" + password))
	cfg := Config{BaseURL: "http://me:" + escaped + "@gateway.example", Headers: map[string]string{"X-Token": "Token tok-secret"}}
	_, call := cfg.Begin(t.Context())
	defer call.End()
	quoted := "no " + password + ", " + escaped + ", Basic " + basic + ", tok-secret"
	for name, err := range map[string]error{
		"connection": &url.Error{Op: "Post", URL: cfg.BaseURL, Err: errors.New("dial " + quoted)},
		"answer":     &llm.APIError{Status: 401, Message: quoted},
		"stream":     call.StreamError([]byte(`{"error":{"message":"` + quoted + `"}}`)),
	} {
		got := call.Fail(t.Context(), err).Error()
		if strings.Contains(got, "secret") || strings.Contains(got, basic) || !strings.Contains(got, "[redacted]") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestSlowReader: the time this side takes is not the provider's silence.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	fired := make(chan struct{})
	ctx, call := Config{StallTimeout: time.Nanosecond}.Begin(context.Background())
	defer call.End()
	time.AfterFunc(20*time.Millisecond, func() { close(fired) })
	<-fired
	if err := ctx.Err(); err != nil {
		t.Errorf("the call was broken off while nothing was awaited: %v", err)
	}
	call.clock.start()
	<-ctx.Done()
	var failure *llm.APIError
	if !errors.As(call.Fail(context.Background(), ctx.Err()), &failure) || failure.Type != TypeStalled {
		t.Errorf("got %+v", failure)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		got := cut(strings.Repeat(text, rapid.IntRange(0, 1000).Draw(t, "times")))
		if len(got) > maxMessage+len("…") || !utf8.ValidString(got) || cut(got) != got && len(got) <= maxMessage {
			t.Errorf("cut to %q", got)
		}
	})
}

// TestPublicHeader: the header of a refused call is told without cookies and
// without what identifies the user.
func TestPublicHeader(t *testing.T) {
	t.Parallel()
	got := exchange(t, Config{APIKey: "sk-secret"}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "session=1")
		w.Header().Set("X-Echo", "key sk-secret")
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	if got == nil || got.Header.Get("Retry-After") != "5" || got.Header.Get("X-Echo") != "key [redacted]" || got.Header.Get("Set-Cookie") != "" {
		t.Errorf("got %+v", got)
	}
}
