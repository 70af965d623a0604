// Package wire is what the clients of every vendor have in common below the
// vendors' own libraries: one HTTP exchange that is broken off when it falls
// silent, and the translation of everything that can go wrong with it into
// [llm.APIError].
//
// The vendors' libraries take an HTTP client as an interface with one method,
// Do; [Call.Do] is that method. Failed answers are read here and not by the
// libraries, so that the same limits, the same redaction and the same error
// type hold for all of them.
package wire

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// Config is how to reach one provider.
type Config struct {
	// BaseURL is where the vendor's paths start; empty is the vendor's own. Its query
	// goes behind every path, and {model} in it stands for the model that is asked.
	BaseURL string
	// APIKey is sent as the vendor expects it, or in KeyHeader; empty sends none. It
	// never appears in an error.
	APIKey string
	// KeyHeader is the header that carries the key in place of the vendor's, with
	// KeyScheme, a word and a space, before it.
	KeyHeader, KeyScheme string
	// Headers are added to every request. Their values never appear in an error.
	Headers map[string]string
	// HTTPClient does the exchange; nil is a client with the default transport.
	// Redirects are never followed, whatever it says: they would carry the key
	// to another host.
	HTTPClient *http.Client
	// StallTimeout breaks off a call that has sent no byte for so long, or, once its
	// answer has begun, nothing of the answer; 0 waits for ever.
	StallTimeout time.Duration
	// FirstTimeout breaks off a call whose answer has not begun after so long,
	// however often it has sent a sign of life; 0 waits for ever.
	FirstTimeout time.Duration
}

// Call is one exchange with a provider. It belongs to one goroutine.
type Call struct {
	cfg     Config
	client  http.Client
	cancel  context.CancelFunc
	clock   clock
	stalled atomic.Bool // the clock has ended the call
	// Sent, when not nil, is called once the whole request has left, with the size of
	// its body; 0: not known.
	Sent func(bytes int64)
	// Whole says that one JSON value is asked for, and no stream of events.
	Whole   bool
	begun   bool // a byte of a good answer has arrived
	content int  // bytes of the answer, without what the protocol adds
}

// Begin prepares an exchange that ends with ctx. The vendor's library must work
// in the context that is returned, and the caller must call [Call.End].
func (c Config) Begin(ctx context.Context) (context.Context, *Call) {
	call := &Call{cfg: c}
	if c.HTTPClient != nil {
		call.client = *c.HTTPClient
	}
	call.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ctx, call.cancel = context.WithCancel(ctx)
	call.clock = newClock(c, func() {
		call.stalled.Store(true)
		call.cancel()
	})
	return ctx, call
}

// End releases what the call holds.
func (c *Call) End() {
	c.clock.stop()
	c.cancel()
}

// Do sends the request. An answer that is not a success is returned as an
// *llm.APIError.
func (c *Call) Do(req *http.Request) (*http.Response, error) {
	c.cfg.address(req)
	if c.Sent != nil {
		req = req.WithContext(c.traced(req.Context(), max(0, req.ContentLength)))
	}
	c.clock.start()
	resp, err := c.client.Do(req)
	c.clock.stop()
	if err != nil {
		return nil, err
	}
	c.clock.alive()
	watched := &body{call: c, rc: resp.Body}
	resp.Body = watched
	if err := c.refusal(resp); err != nil {
		_ = resp.Body.Close() // nothing was written; the refusal is what counts
		return nil, err
	}
	watched.good = true
	return resp, nil
}

// traced is ctx with a trace that tells when the request of so many bytes has left. The transport
// may send a request again over another connection; that is told once.
func (c *Call) traced(ctx context.Context, bytes int64) context.Context {
	var told sync.Once
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(w httptrace.WroteRequestInfo) {
			if w.Err == nil {
				told.Do(func() { c.Sent(bytes) })
			}
		},
	})
}

// Content says that a part of the answer has arrived, of so many bytes: text,
// reasoning or a part of a tool call, and not only a sign of life. The vendors' clients
// call it, and break off an answer that it has an error for.
func (c *Call) Content(bytes int) error {
	c.clock.content()
	if c.content += bytes; c.content > MaxContent {
		return tooLong()
	}
	return nil
}
