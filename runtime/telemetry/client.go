package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/retryafter"
)

const (
	// maxAnswer is how much is read of an answer.
	maxAnswer = 64 << 10
	// maxSaid bounds what is told of an answer's words.
	maxSaid = 300
	// maxDelay is the longest that an endpoint can have one wait.
	maxDelay = 60 * time.Second
)

// client sends requests to one endpoint.
type client struct {
	Settings
	http *http.Client
	now  func() time.Time
}

// newClient follows no redirect: the headers with credentials would go to somebody
// else.
func newClient(s Settings, now func() time.Time) *client {
	return &client{s, &http.Client{
		Timeout:       s.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, now}
}

// outcome is what has become of a request.
type outcome int

const (
	accepted outcome = iota
	again            // may be sent again, after a while
	refused          // will never be taken
	wrongly          // the settings are wrong: it may be taken when they are right
)

// answer is what an endpoint has said.
type answer struct {
	outcome  outcome
	after    time.Duration // what it asks to wait; 0: nothing
	why      string        // for the log
	rejected int64         // spans of those that it has accepted otherwise
}

// send sends one request.
func (c *client) send(ctx context.Context, body []byte) answer {
	req, err := c.request(ctx, body)
	if err != nil {
		return answer{outcome: wrongly, why: err.Error()}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{outcome: again, why: reason(err)}
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode/100 == 2 {
		return c.taken(said) // whatever the end of the answer was
	}
	a := answer{why: resp.Status}
	if text := strings.TrimSpace(string(said)); text != "" && err == nil && !c.Binary {
		a.why += ": " + item.Clip(text, maxSaid)
	}
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests || code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		a.outcome, a.after = again, c.delay(resp.Header.Get("Retry-After"))
	case code/100 == 3:
		a.outcome, a.why = wrongly, resp.Status+": redirects are not followed, as the headers would go to somebody else"
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusNotFound || code == http.StatusMethodNotAllowed || code == http.StatusProxyAuthRequired:
		a.outcome = wrongly
	default:
		a.outcome = refused
	}
	return a
}

func (c *client) request(ctx context.Context, body []byte) (*http.Request, error) {
	if c.Gzip {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(body); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		body = packed.Bytes()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the endpoint is no URL")
	}
	req.Header = c.Headers.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Content-Type", "application/json")
	if c.Binary {
		req.Header.Set("Content-Type", "application/x-protobuf")
	}
	if c.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "rye-mcp")
	}
	return req, nil
}

// reason is why a request could not be made. The URL, which may have a key in it, is not
// told.
func reason(err error) string {
	for {
		of, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err.Error()
		}
		err = of.Err
	}
}

// taken reads the answer to what was accepted; one that cannot be read says nothing.
func (c *client) taken(said []byte) answer {
	if c.Binary {
		rejected, why := partialSuccess(said)
		return answer{outcome: accepted, rejected: rejected, why: item.Clip(why, maxSaid)}
	}
	var r response
	if json.Unmarshal(said, &r) != nil {
		return answer{outcome: accepted}
	}
	rejected, _ := strconv.ParseInt(strings.Trim(string(r.PartialSuccess.RejectedSpans), `"`), 10, 64)
	return answer{outcome: accepted, rejected: max(0, rejected), why: item.Clip(r.PartialSuccess.ErrorMessage, maxSaid)}
}

// delay is what an endpoint asks to wait.
func (c *client) delay(header string) time.Duration {
	wait, _ := retryafter.Wait(header, c.now())
	return min(wait, maxDelay)
}
