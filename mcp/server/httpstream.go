package server

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// patience is how long a POST waits for a message before it answers with a
	// stream: the client then knows that its request arrived.
	patience = time.Second
	// heartbeat is the time between two comments on a stream, which keep proxies
	// from closing it and find out whether the client still reads.
	heartbeat = 15 * time.Second
)

// eventStream writes messages as server-sent events.
type eventStream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// beginStream sends the headers of a stream.
func beginStream(w http.ResponseWriter) (*eventStream, error) {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no") // nginx would hold events back
	allowTime(w)
	w.WriteHeader(http.StatusOK)
	e := &eventStream{w: w, rc: http.NewResponseController(w)}
	return e, e.rc.Flush()
}

// write sends text and waits until it has left.
func (e *eventStream) write(text []byte) error {
	allowTime(e.w)
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.rc.Flush()
}

// send sends messages, each a line.
func (e *eventStream) send(messages []byte) error {
	var events bytes.Buffer
	for line := range bytes.Lines(messages) {
		events.WriteString("event: message\ndata: ")
		events.Write(line)
		events.WriteByte('\n')
	}
	return e.write(events.Bytes())
}

// pump sends what comes out of box until box is closed and empty, the client no
// longer reads, or ctx ends.
func (e *eventStream) pump(ctx context.Context, box *outbox) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-box.wake:
			batch, closed := box.take(nil)
			if closed {
				poke(box.wake) // for other readers
			}
			if len(batch) > 0 {
				if err := e.send(batch); err != nil {
					return err
				}
			}
			if closed {
				return nil
			}
		case <-beat.C:
			if err := e.write([]byte(": \n\n")); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reply answers a POST with the messages about its requests: with one JSON
// object when the only answer is the first that comes, else with a stream.
type reply struct {
	w       http.ResponseWriter
	out     *outbox
	accept  accepted
	modern  bool             // the revision wants errors to have a status of HTTP
	refusal func() *rpcError // the answer, when that is an error; nil: it is none
}

func newReply(w http.ResponseWriter, accept accepted, requests int) *reply {
	p := &reply{w: w, out: newOutbox(), accept: accept}
	p.out.single, p.out.requests = !accept.events, requests
	return p
}

// write returns when the last message is written, the client no longer reads,
// or ctx ends.
func (p *reply) write(ctx context.Context) error {
	var late <-chan time.Time // without events there is nothing to do but wait
	if p.accept.events {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	var seen []byte
	for {
		select {
		case <-p.out.wake:
			batch, closed := p.out.take(nil)
			seen = append(seen, batch...)
			answered := closed && len(batch) > 0
			switch {
			case answered && (p.out.single || p.accept.json && bytes.Count(seen, []byte("\n")) == 1):
				writeJSON(p.w, p.status(), lastLine(seen))
				return nil
			case p.accept.events:
				return p.stream(ctx, seen, closed)
			case closed: // cancelled, and no stream to leave empty
				allowTime(p.w)
				p.w.WriteHeader(http.StatusNoContent)
				return nil
			}
		case <-late:
			return p.stream(ctx, seen, false)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// status is that of an answer that is one JSON object.
func (p *reply) status() int {
	if !p.modern {
		return http.StatusOK
	}
	failure := p.refusal()
	switch {
	case failure == nil:
		return http.StatusOK
	case failure.Code == mcp.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case slices.Contains([]int{
		mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION,
		mcp.INVALID_REQUEST, mcp.INVALID_PARAMS, mcp.PARSE_ERROR,
	}, failure.Code):
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// stream sends what was seen so far, and what follows.
func (p *reply) stream(ctx context.Context, seen []byte, closed bool) error {
	e, err := beginStream(p.w)
	if err != nil {
		return err
	}
	if len(seen) > 0 {
		if err := e.send(seen); err != nil {
			return err
		}
	}
	if closed {
		return nil
	}
	return e.pump(ctx, p.out)
}

// lastLine is the last of some lines, with its newline.
func lastLine(lines []byte) []byte {
	return lines[1+bytes.LastIndexByte(lines[:len(lines)-1], '\n'):]
}
