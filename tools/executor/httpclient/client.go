package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// DefaultTimeout bounds a call, with all its attempts, of a tool that says nothing
	// else.
	DefaultTimeout = 30 * time.Second

	// MaxBody is how many bytes of an answer are read; a longer one is refused.
	MaxBody = 10 << 20
)

// Client is the primitive [chain.HTTPClient].
type Client struct {
	fixed, chosen http.RoundTripper
}

// New returns a client. Fixed takes requests to hosts that tools name, chosen those to
// hosts that callers name, or servers that redirect: it is where private ones are refused.
func New(fixed, chosen http.RoundTripper) *Client { return &Client{fixed, chosen} }

var _ chain.Primitive = (*Client)(nil)

// Result is the answer to a request.
type Result struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty" jsonschema:"those that say what the body is and how to go on"`
	Body    any               `json:"body" jsonschema:"JSON as it is; else text"`
	Length  int               `json:"length,omitempty" jsonschema:"bytes of a body that is no text, which is not shown"`
}

// Run makes the request of a tool and returns a [*Result]. An answer of 400 and more
// is a failure of the tool.
func (c *Client) Run(ctx context.Context, p *chain.Plan) (any, error) {
	r, err := newRequest(p)
	if err != nil {
		return nil, err
	}
	timeout := r.timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := c.send(ctx, r)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, tool.Faultf(tool.CodeTimeout, "%s had no answer within %s", r.url.Host, timeout)
	case err != nil:
		return nil, tool.Faultf(tool.CodeToolFailed, "%s %s: %w", r.method, r.url.Host, withoutURL(err))
	}
	result := resultOf(answer)
	if answer.status >= http.StatusBadRequest {
		return nil, tool.Faultf(tool.CodeToolFailed, "%s answered %d %s", r.url.Host, answer.status, http.StatusText(answer.status)).
			With("status", result.Status).With("headers", result.Headers).With("body", result.Body)
	}
	return result, nil
}

// withoutURL is an error of the library without the address, which may hold keys.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// answer is a whole answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send makes the request, and again when that can help and the tool declares it.
func (c *Client) send(ctx context.Context, r *request) (last answer, err error) {
	client := &http.Client{Transport: &byTarget{c, r}, CheckRedirect: r.checkRedirect}
	tried := false
	waited := retry.Do(ctx, r.retry.pace(&last), func(ctx context.Context) error {
		tried = true
		if last, err = once(ctx, client, r); r.again(last, err) {
			return retry.RetryableError(errAgain)
		}
		return nil
	})
	if !tried {
		return answer{}, waited
	}
	return last, err
}

var errAgain = errors.New("one more attempt can help")

func once(ctx context.Context, client *http.Client, r *request) (answer, error) {
	request, err := r.fresh(ctx)
	if err != nil {
		return answer{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxBody+1))
	if err == nil && len(body) > MaxBody {
		err = errTooLong
	}
	return answer{response.StatusCode, response.Header, body}, err
}

var errTooLong = fmt.Errorf("its answer has more than %d MiB", MaxBody>>20)
