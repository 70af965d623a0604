package langgraph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/retryafter"
)

const (
	// maxAnswer is the most bytes of an answer about one thread: a copy of our largest
	// states, with what LangChain puts around each message.
	maxAnswer = 64 << 20
	// maxSaid is the most that is told of the words of a server, in bytes.
	maxSaid = 300
	// maxAfter is the longest that a server can have one wait.
	maxAfter = time.Minute
	// defaultTimeout is how long a request may take in all.
	defaultTimeout = 30 * time.Second
)

// Options say where a server is and how it is asked.
type Options struct {
	Place Place
	// Key gives the key for the header x-api-key; empty: none is sent. It may be nil.
	Key     func(context.Context) (string, error)
	Timeout time.Duration    // of a request with its answer; 0: 30 s
	Now     func() time.Time // nil: time.Now
	// Transport carries requests; nil: connections of its own, without compression.
	Transport http.RoundTripper
}

// Client asks one server.
type Client struct {
	options Options
	http    *http.Client
}

// New returns a client. It connects to nothing yet.
func New(o Options) *Client {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Transport == nil {
		// A compressed answer may become a thousand times as large.
		o.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: 10 * time.Second}
	}
	return &Client{o, &http.Client{
		Transport: o.Transport, Timeout: o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close lets go of the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Place is where the server is.
func (c *Client) Place() Place { return c.options.Place }

// ask sends a request and decodes the answer into out, which may be nil.
func (c *Client) ask(ctx context.Context, method string, in, out any, path ...string) error {
	req, err := c.request(ctx, method, in, path)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.lost(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		return c.refused(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return c.lost(ctx, err)
	case len(body) > maxAnswer:
		return &Error{Fact: ErrNonsense, Status: resp.StatusCode, Said: fmt.Sprintf("more than %d MB", maxAnswer>>20)}
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return &Error{Fact: ErrNonsense, Status: resp.StatusCode, Said: "no JSON of that form: " + plain(err.Error())}
	}
	return nil
}

func (c *Client) request(ctx context.Context, method string, in any, path []string) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.options.Place.at(path...), body)
	if err != nil {
		return nil, errPlace
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "rye-mcp")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.options.Key == nil {
		return req, nil
	}
	key, err := c.options.Key(ctx)
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("x-api-key", key)
	}
	return req, nil
}

// lost is an answer that did not come, or not whole.
func (c *Client) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) { // its text has the URL
		if wrapped.Timeout() {
			return &Error{Fact: ErrUnreachable, Said: "no answer within " + c.options.Timeout.String()}
		}
		err = wrapped.Err
	}
	return &Error{Fact: ErrUnreachable, Said: plain(err.Error())}
}

// refused is an answer that is no success.
func (c *Client) refused(resp *http.Response) error {
	const most = 16 << 10
	said, _ := io.ReadAll(io.LimitReader(resp.Body, most)) // whatever came
	e := &Error{Fact: factOf(resp.StatusCode), Status: resp.StatusCode, Said: plain(words(said)), After: c.after(resp.Header.Get("Retry-After"))}
	if resp.StatusCode/100 == 3 {
		e.Said = "it redirects, which is not followed: a key would go to somebody else"
	}
	return e
}

// words are what an error of the server says: text, or one of its forms of JSON.
func words(body []byte) string {
	var form struct {
		Detail  any    `json:"detail"`
		Message string `json:"message"`
		Error   struct {
			Issues []struct {
				Path    []any  `json:"path"`
				Message string `json:"message"`
			} `json:"issues"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &form) != nil {
		return string(body)
	}
	switch detail, is := form.Detail.(string); {
	case is:
		return detail
	case form.Message != "":
		return form.Message
	case len(form.Error.Issues) > 0:
		return fmt.Sprintf("%v: %s", form.Error.Issues[0].Path, form.Error.Issues[0].Message)
	}
	return string(body)
}

// plain is text of a stranger on one line, without control characters.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text)
	return item.Clip(strings.Join(strings.Fields(text), " "), maxSaid)
}

// after is what a server asks to wait.
func (c *Client) after(header string) time.Duration {
	wait, _ := retryafter.Wait(header, c.options.Now())
	return min(wait, maxAfter)
}
