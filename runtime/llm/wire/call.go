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
	"math"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// Config is how to reach one provider.
type Config struct {
	// BaseURL is where the vendor's paths start; empty is the vendor's own.
	BaseURL string
	// APIKey is sent as the vendor expects it; empty sends none. It never
	// appears in an error.
	APIKey string
	// Headers are added to every request. Their values never appear in an error.
	Headers map[string]string
	// HTTPClient does the exchange; nil is a client with the default transport.
	// Redirects are never followed, whatever it says: they would carry the key
	// to another host.
	HTTPClient *http.Client
	// StallTimeout breaks off a call that has sent no byte for so long; 0 waits
	// for ever.
	StallTimeout time.Duration
}

// Call is one exchange with a provider. It belongs to one goroutine.
type Call struct {
	cfg     Config
	client  http.Client
	cancel  context.CancelFunc
	timer   *time.Timer // runs only while something is awaited; nil without a limit
	stalled atomic.Bool // the timer has ended the call
	// Sent, when not nil, is called once the whole request has left.
	Sent  func()
	begun bool // a byte of a good answer has arrived
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
	if c.StallTimeout > 0 {
		// It must not run out before it is stopped.
		call.timer = time.AfterFunc(math.MaxInt64, func() {
			call.stalled.Store(true)
			call.cancel()
		})
		call.timer.Stop()
	}
	return ctx, call
}

// End releases what the call holds.
func (c *Call) End() {
	c.await(false)
	c.cancel()
}

// Do sends the request. An answer that is not a success is returned as an
// *llm.APIError.
func (c *Call) Do(req *http.Request) (*http.Response, error) {
	for name, value := range c.cfg.Headers {
		req.Header.Set(name, value)
	}
	if c.Sent != nil {
		req = req.WithContext(c.traced(req.Context()))
	}
	c.await(true)
	resp, err := c.client.Do(req)
	c.await(false)
	if err != nil {
		return nil, err
	}
	watched := &body{call: c, rc: resp.Body}
	resp.Body = watched
	if err := c.refusal(resp); err != nil {
		_ = resp.Body.Close() // nothing was written; the refusal is what counts
		return nil, err
	}
	watched.good = true
	return resp, nil
}

// traced is ctx with a trace that tells when the request has left. The transport
// may send a request again over another connection; that is told once.
func (c *Call) traced(ctx context.Context) context.Context {
	var told sync.Once
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(w httptrace.WroteRequestInfo) {
			if w.Err == nil {
				told.Do(c.Sent)
			}
		},
	})
}

// await starts or stops the clock that breaks off a silent call. It runs only
// while this side waits, so that a slow reader is not taken for a slow sender.
func (c *Call) await(on bool) {
	switch {
	case c.timer == nil:
	case on:
		c.timer.Reset(c.cfg.StallTimeout)
	default:
		c.timer.Stop()
	}
}
