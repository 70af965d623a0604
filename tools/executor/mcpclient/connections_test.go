package mcpclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/server"

	"github.com/rye-mcp/rye-mcp/tools/process"
)

// counted is a server of which each start is counted and told.
func counted(t *testing.T, behaviour string) (s Server, starts *atomic.Int32, started <-chan struct{}) {
	t.Helper()
	s, starts = stdio(t, behaviour), &atomic.Int32{}
	told := make(chan struct{}, 100)
	s.prepare = func(context.Context, *process.Command) error {
		starts.Add(1)
		told <- struct{}{}
		return nil
	}
	return s, starts, told
}

// echo calls a tool in the background, and tells what came of it.
func echo(ctx context.Context, c *Connections, s Server) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, s, "echo", nil)
		done <- err
	}()
	return done
}

// TestWaitsOnlyForItself: while a server does not greet, a call ends when its own time is over
// or its caller cancels it, and the server is started once for all of them. Closing ends the
// call that still waits.
func TestWaitsOnlyForItself(t *testing.T) {
	t.Parallel()
	s, starts, started := counted(t, "is silent")
	c := connections(t)
	first := echo(t.Context(), c, s)
	<-started
	for stderr := ""; stderr == ""; { // until its process has written something
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := <-echo(short, c, s)
		cancel()
		failed, ok := errors.AsType[*FailedError](err)
		if !ok || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a call whose time is over: %v", err)
		}
		stderr = failed.Stderr
	}
	cancelled, cancel := context.WithCancel(t.Context())
	second := echo(cancelled, c, s)
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
	select {
	case err := <-first:
		t.Errorf("the first call has ended: %v", err)
	default:
	}
	c.Close()
	if err := <-first; !errors.Is(err, errClosed) {
		t.Errorf("the call that waits when all is closed: %v", err)
	}
	if starts.Load() != 1 {
		t.Errorf("started %d times", starts.Load())
	}
}

// TestStartsNothingForNobody: a call whose caller has gone starts no server.
func TestStartsNothingForNobody(t *testing.T) {
	t.Parallel()
	s, starts, _ := counted(t, "works")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := <-echo(gone, connections(t), s); !errors.Is(err, context.Canceled) || starts.Load() != 0 {
		t.Errorf("%v; started %d times", err, starts.Load())
	}
}

// TestFirstCallerLeaves: the caller that a connection was begun for leaves, and the others
// still get that connection.
func TestFirstCallerLeaves(t *testing.T) {
	t.Parallel()
	other := server.NewStreamableHTTPServer(tools(), server.WithStateful(true))
	asked, release := make(chan struct{}, 100), make(chan struct{})
	s := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-release
		other.ServeHTTP(w, r)
	}))
	c := connections(t)
	leaves, leave := context.WithCancel(t.Context())
	first := echo(leaves, c, s)
	<-asked
	second := echo(t.Context(), c, s)
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	close(release)
	if err := <-second; err != nil {
		t.Errorf("the second: %v", err)
	}
}

// TestLateFailure: a call that fails on a session which was replaced meanwhile leaves the new
// session alone.
func TestLateFailure(t *testing.T) {
	t.Parallel()
	s, starts, _ := counted(t, "works")
	c := connections(t)
	var old *connection
	if err := c.use(t.Context(), s, "look", func(_ context.Context, conn *connection) error { old = conn; return nil }); err != nil {
		t.Fatal(err)
	}
	place, err := c.slot(s)
	if err != nil {
		t.Fatal(err)
	}
	place.forget(old)
	if err := <-echo(t.Context(), c, s); err != nil || starts.Load() != 2 {
		t.Fatalf("%v; started %d times", err, starts.Load())
	}
	place.forget(old)
	if err := <-echo(t.Context(), c, s); err != nil || starts.Load() != 2 {
		t.Errorf("%v; started %d times", err, starts.Load())
	}
}

// TestServerDoesNotRead: a request that does not fit the pipe of a server which reads nothing ends
// with its caller.
func TestServerDoesNotRead(t *testing.T) {
	t.Parallel()
	said, theirs := io.Pipe()
	unread, ours := io.Pipe()
	session := overPipes{transport.NewIO(said, ours, noLog{})}
	if err := session.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = theirs.Close(), unread.Close()
		_ = session.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := session.SendRequest(ctx, transport.JSONRPCRequest{Method: "ping"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
