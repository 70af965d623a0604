package llmtest

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

func (s suite) refusals(t *testing.T) {
	for _, c := range []struct {
		script string
		want   llm.APIError
	}{
		{`{status: 401, type: authentication_error, message: "bad key"}`,
			llm.APIError{Status: 401, Type: "authentication_error", Message: "bad key"}},
		{`{status: 429, type: rate_limit_error, message: "slow down", retry_after: 7s}`,
			llm.APIError{Status: 429, Type: "rate_limit_error", Message: "slow down", Header: asks("Retry-After", "7")}},
		{`{status: 429, type: rate_limit_error, message: "slow down", retry_after: 1500ms}`,
			llm.APIError{Status: 429, Type: "rate_limit_error", Message: "slow down", Header: asks("Retry-After-Ms", "1500")}},
		{`{status: 500, type: api_error, message: "oops"}`,
			llm.APIError{Status: 500, Type: "api_error", Message: "oops"}},
		{`{status: 529, type: overloaded_error, message: "busy"}`,
			llm.APIError{Status: 529, Type: "overloaded_error", Message: "busy"}},
	} {
		b := s.start(t, "turns: [{error: "+c.script+"}]")
		resp, got := b.fail(t)
		if asked, want := llm.Asked(got.Header, llm.RetryAfter, time.Now()), llm.Asked(c.want.Header, llm.RetryAfter, time.Now()); asked != want {
			t.Errorf("asked to wait %s, want %s", asked, want)
		}
		got.Header, c.want.Header = nil, nil
		if !reflect.DeepEqual(*got, c.want) {
			t.Errorf("got %+v, want %+v", *got, c.want)
		}
		if resp.Usage.Reported {
			t.Errorf("usage = %+v for a refusal", resp.Usage)
		}
		if n := len(b.server.Requests()); n != 1 {
			t.Errorf("%d requests: retries are not the client's", n)
		}
	}
}

func asks(name, value string) http.Header { return http.Header{name: {value}} }

func (s suite) errorInStream(t *testing.T) {
	b := s.start(t, `
turns:
  - text: "this text is long enough for several events"
    usage: {input_tokens: 12, output_tokens: 9}
    error: {type: overloaded_error, message: "too busy", after: 3}
`)
	resp, got := b.fail(t)
	if got.Status != 529 || cmp.Or(got.Type, got.Code) != "overloaded_error" || !strings.Contains(got.Message, "too busy") || !got.MidStream {
		t.Errorf("got %+v", *got)
	}
	s.checkPartial(t, resp, 12)
}

// checkPartial: Anthropic reports the input at the start, OpenAI all at the end.
func (s suite) checkPartial(t *testing.T, resp llm.Response, input int64) {
	t.Helper()
	if s.protocol == Anthropic && (resp.Usage.InputTokens != input || !resp.Usage.Reported) {
		t.Errorf("partial usage = %+v", resp.Usage)
	}
	if s.protocol != Anthropic && resp.Usage.Reported {
		t.Errorf("usage = %+v, but none was sent", resp.Usage)
	}
}

func (s suite) cut(t *testing.T) {
	b := s.start(t, `
turns:
  - text: "this text is long enough for several events"
    usage: {input_tokens: 12, output_tokens: 9}
    cut_after: 3
`)
	resp, got := b.fail(t)
	if got.Status != 0 || got.Type != wire.TypeConnection || !got.MidStream {
		t.Errorf("got %+v", *got)
	}
	s.checkPartial(t, resp, 12)
}

func (s suite) nobodyThere(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	b := s.start(t, "turns: [{text: x}]", func(c *wire.Config) { c.BaseURL = "http://" + address })
	if _, got := b.fail(t); got.Status != 0 || got.Type != wire.TypeConnection || got.MidStream {
		t.Errorf("got %+v", *got)
	}
}

// shortStall is the stall timeout of the tests that wait for it.
const shortStall = 100 * time.Millisecond

func (s suite) silent(t *testing.T) {
	b := s.start(t, "turns: [{hang: true}]", func(c *wire.Config) { c.StallTimeout = shortStall })
	if _, got := b.fail(t); got.Type != wire.TypeStalled || got.Status != 0 || got.MidStream {
		t.Errorf("got %+v", *got)
	}
}

func (s suite) fallsSilent(t *testing.T) {
	b := s.start(t, `
turns:
  - text: "this text is long enough for several events"
    usage: {input_tokens: 12, output_tokens: 9}
    cut_after: 3
    hang: true
`, func(c *wire.Config) { c.StallTimeout = shortStall })
	resp, got := b.fail(t)
	if got.Type != wire.TypeStalled || !got.MidStream {
		t.Errorf("got %+v", *got)
	}
	s.checkPartial(t, resp, 12)
}

func (s suite) cancelled(t *testing.T) {
	b := s.start(t, `
turns:
  - {match: {first: "before"}, hang: true}
  - {text: "this text is long enough for several events", cut_after: 3, hang: true}
`)
	why := errors.New("the user said stop")
	for _, text := range []string{"before", "during"} {
		ctx, cancel := context.WithCancelCause(context.Background())
		if text == "before" {
			time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
		}
		_, err := b.client.Stream(ctx, ask(text), func(llm.Delta) { cancel(why) })
		var failure *llm.APIError
		if !errors.Is(err, why) || errors.As(err, &failure) {
			t.Errorf("%s: got %v, want the cause of the cancellation", text, err)
		}
		cancel(nil)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if _, err := b.client.Stream(ctx, ask("late"), nil); !errors.Is(err, why) {
		t.Errorf("already cancelled: got %v", err)
	}
}

func (s suite) keyStaysAway(t *testing.T) {
	b := s.start(t, `
turns:
  - {match: {turn: 1}, times: 1, error: {status: 401, type: authentication_error, message: "wrong key `+apiKey+`"}}
  - {text: "long enough to have several events in it", error: {type: api_error, message: "`+apiKey+`", after: 2}}
`)
	for range 2 {
		if _, got := b.fail(t); !strings.Contains(got.Message, "[redacted]") {
			t.Errorf("message = %q", got.Message)
		}
	}
}

func (s suite) headers(t *testing.T) {
	b := s.start(t, "turns: [{text: x}]", func(c *wire.Config) { c.Headers = map[string]string{"X-Team": "rye"} })
	b.stream(t, ask("hi"))
	h := b.server.Requests()[0].Header
	if h.Get("X-Team") != "rye" {
		t.Errorf("headers = %v", h)
	}
	if got := h.Get("X-Api-Key") + h.Get("Authorization"); !strings.HasSuffix(got, apiKey) {
		t.Errorf("the key arrived as %q", got)
	}
}
