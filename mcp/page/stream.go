package page

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// beatEvery is how often a stream says that it lives; a page gives up on one that is
	// silent for longer than twice that.
	beatEvery = 15 * time.Second
	// writeTime bounds how long a client may take to read one piece of an answer.
	writeTime = 30 * time.Second
	// maxStreams bounds the streams of a server: half of the connections that it has.
	maxStreams = 512
)

// beat is the line of a stream that only says that it lives.
type beat struct {
	Beat time.Time `json:"beat"`
}

// streams counts those that are open.
type streams struct {
	mu   sync.Mutex
	open int
}

func (s *streams) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= maxStreams {
		return false
	}
	s.open++
	return true
}

func (s *streams) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// lines is an answer of lines of JSON. Its methods are safe for concurrent use.
type lines struct {
	w    http.ResponseWriter
	wire *http.ResponseController
	time time.Duration // to read one line
	mu   sync.Mutex
	err  error // of the first write that failed
}

// send writes a line, and waits until the client has taken it: a client that reads slowly
// is told less often, and one that does not read is gone.
func (l *lines) send(v any) error {
	line, err := plain(v)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	_ = l.wire.SetWriteDeadline(time.Now().Add(l.time))
	if _, l.err = l.w.Write(line); l.err == nil {
		l.err = l.wire.Flush()
	}
	return l.err
}

// stream answers with lines that tell sends, until the client goes, the server ends or
// tell returns. The error of tell is the last line.
func (p *Page) stream(ctx context.Context, c *call, tell func(ctx context.Context, send func(any) error) error) (any, error) {
	if !p.streams.enter() {
		return nil, refuse(http.StatusServiceUnavailable, codeStreams, "%d streams are open, as many as there may be: close pages", maxStreams)
	}
	defer p.streams.leave()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out := &lines{w: c.w, wire: http.NewResponseController(c.w), time: p.writeTime}
	c.w.Header().Set("Content-Type", "application/x-ndjson")
	c.w.WriteHeader(http.StatusOK)
	p.record(c, 0, nil) // its end may be days away
	c.recorded = true
	if out.send(beat{p.now().UTC()}) != nil {
		return nil, nil //nolint:nilnil // nobody is there any more
	}
	var beats sync.WaitGroup
	beats.Go(func() { p.keepAlive(ctx, stop, out) })
	err := tell(ctx, out.send)
	stop()
	beats.Wait()
	if err != nil && out.err == nil && c.r.Context().Err() == nil && !p.hasEnded() {
		_ = out.send(failure{told{tool.AsFault(err)}})
	}
	return nil, nil //nolint:nilnil // all of it was said
}

// keepAlive sends beats until ctx ends, and stops a stream whose client does not take
// them or whose server ends.
func (p *Page) keepAlive(ctx context.Context, stop context.CancelFunc, out *lines) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if out.send(beat{p.now().UTC()}) != nil {
				stop()
				return
			}
		case <-p.ended:
			stop()
			return
		case <-ctx.Done():
			return
		}
	}
}

func (p *Page) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
