package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// ServeStdio serves one client that writes messages to in and reads them from
// out, one a line. Nothing but messages is written to out.
//
// It returns nil when in ends, context.Cause(ctx) when ctx does, and the error
// when reading or writing fails. The contexts of calls still in flight then end
// with [ErrClientGone] or the cause of ctx; an answer within two seconds
// is still written. A Read or Write that blocks beyond that is left behind until
// the other end of the stream closes.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	defer surviveSIGPIPE(out)()
	box := newOutbox()
	go box.run(out)
	workers := newWorkerPool()
	defer close(workers.stop)
	c := newConn(s, "stdio", box, new(load), workers)
	err := c.register(ctx)
	if err == nil {
		err = c.serve(ctx, in)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	c.end(ending, ErrClientGone)
	select {
	case <-box.done:
		if err == nil && box.err != nil && !errors.Is(box.err, syscall.EPIPE) { // a client that has gone reads no last answer
			err = fmt.Errorf("write to client: %w", box.err)
		}
	case <-ending.Done():
	}
	return err
}

// serve acts on the client's lines until there are no more, the client no
// longer reads, or ctx ends. The lines are read in a goroutine of its own, because a
// Read cannot be interrupted: that ends with the stream, or at the first line after.
func (c *conn) serve(ctx context.Context, in io.Reader) error {
	ended := make(chan error, 1)
	go func() { ended <- c.read(ctx, in) }()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.out.done:
		return fmt.Errorf("write to client: %w", c.out.err)
	case err := <-ended:
		return err
	}
}

func (c *conn) read(ctx context.Context, in io.Reader) error {
	lines := newLineReader(in, maxLine)
	for {
		l, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read from client: %w", err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		c.receiveLine(ctx, l)
		if err := c.keepUp(ctx); err != nil {
			return err
		}
	}
}

// keepUp waits for a client that writes but does not read: dropping answers would be
// worse, and so would keeping them all in memory.
func (c *conn) keepUp(ctx context.Context) error {
	for c.out.full() {
		select {
		case <-c.out.drained:
		case <-c.out.done:
			return fmt.Errorf("write to client: %w", c.out.err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (c *conn) receiveLine(ctx context.Context, l line) {
	if l.tooLong {
		c.refuse(c.out, false, l.id(), tooLongMessage())
		return
	}
	batch, err := c.parse(l.data)
	if err != nil {
		c.refuse(c.out, false, requestID{}, err)
		return
	}
	c.receiveBatch(ctx, batch, c.out, false)
}

// surviveSIGPIPE makes a write to a client that has gone fail with EPIPE. By
// default the Go runtime ends the process when that happens on stdout. The
// signal is caught and not ignored, as child processes inherit ignored signals.
func surviveSIGPIPE(out io.Writer) (restore func()) {
	if _, isFile := out.(*os.File); !isFile {
		return func() {}
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGPIPE)
	return func() { signal.Stop(caught) }
}
