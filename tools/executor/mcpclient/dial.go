package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"syscall"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/rye-mcp/rye-mcp/tools/process"
)

// maxMessage is how many bytes one message of a server may have, or over HTTP one
// answer. The longest answers of servers in use are pictures of some MiB.
const maxMessage = 16 << 20

var errTooLong = fmt.Errorf("it sent a message of more than %d MiB", maxMessage>>20)

func dial(ctx context.Context, s Server) (*connection, error) {
	if s.Transport == HTTP {
		return dialHTTP(s)
	}
	return dialStdio(ctx, s)
}

// dialStdio starts a server as a command in a group of its own.
func dialStdio(ctx context.Context, s Server) (*connection, error) {
	command := process.Command{Path: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir}
	if s.prepare != nil {
		if err := s.prepare(ctx, &command); err != nil {
			return nil, err
		}
	}
	peer, err := process.Open(command) //nolint:contextcheck // it outlives the call that starts it
	if err != nil {
		return nil, err
	}
	from := &lines{Reader: peer.Stdout}
	session := client.NewClient(overPipes{transport.NewIO(from, peer.Stdin, noLog{})}, client.WithDiscoverTimeout(discoverTimeout))
	conn := &connection{Client: session, lost: from.over.Load, stderr: peer.Stderr}
	conn.why = func(_ context.Context, err error) *FailedError {
		failed := &FailedError{Err: err, Stderr: peer.Stderr()}
		switch {
		case from.tooLong.Load():
			failed.Err = errTooLong
		case from.over.Load(), errors.Is(err, syscall.EPIPE):
			peer.Kill() // its output or input is closed: it is of no use, if it lives at all
			failed.Err, failed.Stderr = fmt.Errorf("its process ended (%s)", peer.Exit()), peer.Stderr()
		}
		return failed
	}
	conn.end = func() {
		_ = session.Close() // of the pipes, which the peer closes too
		peer.Close()
	}
	return conn, nil
}

// noLog is the log stream of a transport that has none.
type noLog struct{}

func (noLog) Read([]byte) (int, error) { return 0, io.EOF }
func (noLog) Close() error             { return nil }

// lines passes lines of bounded length. A longer one ends the stream, as the end of
// the server does.
type lines struct {
	io.Reader

	length        int // of the line so far
	over, tooLong atomic.Bool
}

func (l *lines) Read(p []byte) (int, error) {
	if l.over.Load() {
		return 0, io.EOF
	}
	n, err := l.Reader.Read(p)
	for _, b := range p[:n] {
		if l.length++; b == '\n' {
			l.length = 0
		}
		if l.length > maxMessage {
			l.tooLong.Store(true)
			n, err = 0, io.EOF
			break
		}
	}
	if err != nil {
		l.over.Store(true)
		return n, io.EOF // the transport would log any other
	}
	return n, nil
}

func dialHTTP(s Server) (*connection, error) {
	over := &bounded{RoundTripper: http.DefaultTransport}
	base, err := transport.NewStreamableHTTP(s.URL,
		transport.WithHTTPBasicClient(&http.Client{Transport: over, CheckRedirect: sameHost}),
		transport.WithHTTPHeaders(s.Headers), transport.WithHTTPLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	session := client.NewClient(overHTTP{base}, client.WithDiscoverTimeout(discoverTimeout))
	return &connection{
		Client: session,
		lost:   func() bool { return false },
		why:    whyHTTP,
		stderr: func() string { return "" },
		end:    func() { _ = session.Close() },
	}, nil
}

// sameHost refuses to follow a server elsewhere: headers with keys would go along.
func sameHost(next *http.Request, via []*http.Request) error {
	if first := via[0].URL; next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
		return fmt.Errorf("it redirects to %s", next.URL.Host)
	}
	if len(via) > 5 {
		return errors.New("it redirects again and again")
	}
	return nil
}

// bounded bounds the bodies of answers, and notes in the context of each call what came of
// its requests: several calls share a connection.
type bounded struct{ http.RoundTripper }

// outcome is what came of the last request of a call.
type outcome struct {
	tooLong atomic.Bool
	status  atomic.Int32
}

type outcomeKey struct{}

// noting is a context for one call.
func noting(ctx context.Context) context.Context {
	return context.WithValue(ctx, outcomeKey{}, &outcome{})
}

// outcomeIn is what came of the call of a context.
func outcomeIn(ctx context.Context) *outcome {
	if o, is := ctx.Value(outcomeKey{}).(*outcome); is {
		return o
	}
	return &outcome{} // of a request that no call waits for
}

// RoundTrip implements [http.RoundTripper].
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	o := outcomeIn(r.Context())
	o.status.Store(0)
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		o.status.Store(int32(response.StatusCode)) //nolint:gosec // three digits
		response.Body = &body{ReadCloser: response.Body, left: maxMessage, tooLong: &o.tooLong}
	}
	return response, err
}

// whyHTTP puts what the library says of a failure into words of ours: its own repeat
// what the server said.
func whyHTTP(ctx context.Context, err error) *FailedError {
	o := outcomeIn(ctx)
	status := int(o.status.Load())
	_, refused := errors.AsType[*RefusedError](err)
	of, unreachable := errors.AsType[*url.Error](err)
	switch {
	case o.tooLong.Load():
		return &FailedError{Err: errTooLong}
	case unreachable:
		return &FailedError{Err: of.Err} // the address may hold a key
	case refused, errors.Is(err, context.Canceled), errors.Is(err, errTimeout), errors.Is(err, errClosed),
		errors.Is(err, errTooManyTools), errors.Is(err, errTooManyPages):
		return &FailedError{Err: err}
	case status >= http.StatusBadRequest:
		return &FailedError{Err: fmt.Errorf("it answers %d %s", status, http.StatusText(status)), Said: err.Error()}
	}
	return &FailedError{Err: errors.New("it does not keep to the protocol"), Said: err.Error()}
}

type body struct {
	io.ReadCloser

	left    int
	tooLong *atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		b.tooLong.Store(true)
		return 0, errTooLong
	}
	return n, err
}
