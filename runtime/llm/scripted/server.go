package scripted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// maxBody is more than any context window holds.
const maxBody = 64 << 20

// errNoStream is a request for an answer in one piece, which no client here
// asks for.
var errNoStream = errors.New("this server answers only with stream: true")

// Options changes how a script is served.
type Options struct {
	// Record keeps every request for [Server.Requests].
	Record bool
}

// Server serves a script until it is closed.
type Server struct {
	script    *Script
	opts      Options
	protocols map[string]protocol
	url       string
	http      *http.Server
	served    chan struct{} // closed when the listener is done
	cancel    context.CancelFunc
	unwatch   func() bool

	mu       sync.Mutex
	closed   bool
	active   sync.WaitGroup // handlers
	used     []int          // by turn: how many requests it has answered
	recorded []Recorded
}

// Recorded is a request that came in.
type Recorded struct {
	Path   string
	Header http.Header
	Body   []byte
	Model  string
	System string
	Tools  []string // names
	Turn   int      // the number of the answer asked for, from 1
	Last   string   // text of the last message
	Line   int      // of the turn that answered; 0 when none did
}

// Serve starts a server on a free loopback port. It ends with ctx or with
// [Server.Close], whichever comes first.
func Serve(ctx context.Context, script *Script, opts Options) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve the script %s: %w", script.path, err)
	}
	base, cancel := context.WithCancel(ctx)
	s := &Server{
		script:    script,
		opts:      opts,
		protocols: protocols(),
		url:       "http://" + listener.Addr().String(),
		served:    make(chan struct{}),
		cancel:    cancel,
		used:      make([]int, len(script.turns)),
	}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.handle),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	go func() {
		defer close(s.served)
		// It returns when the server is closed, which is the only way to end it.
		_ = s.http.Serve(listener)
	}()
	s.unwatch = context.AfterFunc(ctx, s.stop)
	return s, nil
}

// BaseURL is the address without a path, such as http://127.0.0.1:40123. The
// protocols live below it at /v1/messages, /v1/chat/completions and /v1/responses.
func (s *Server) BaseURL() string { return s.url }

// Requests are the requests so far, oldest first; nothing without
// [Options.Record].
func (s *Server) Requests() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Recorded(nil), s.recorded...)
}

// Close breaks off what is being answered and frees the port. It can be called
// more than once.
func (s *Server) Close() error {
	s.unwatch()
	s.stop()
	return nil
}

func (s *Server) stop() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.active.Wait()
	_ = s.http.Close() // the listener's error, if any, changes nothing any more
	<-s.served
}

// handle answers one request.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler) // the documented way to drop a connection
	}
	defer s.active.Done()
	proto, ok := s.protocols[r.URL.Path]
	if !ok || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, proto, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	req, err := proto.decode(body)
	if err != nil {
		refuse(w, proto, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	t := s.choose(r, req)
	if t == nil {
		refuse(w, proto, http.StatusInternalServerError, "no_turn_matches", fmt.Sprintf(
			"no turn of the script %s matches answer %d; the last message is: %.400s", s.script.path, req.turn(), req.last()))
		return
	}
	s.play(r.Context(), w, proto, t, req)
}

// enter counts a handler in, unless the server is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.active.Add(1)
	return true
}

// choose finds the turn that answers req, counts its use and records the
// request.
func (s *Server) choose(r *http.Request, req *request) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	var chosen *turn
	for i := range s.script.turns {
		t := &s.script.turns[i]
		if (t.Times == 0 || s.used[i] < t.Times) && t.Match.holds(req) {
			s.used[i]++
			chosen = t
			break
		}
	}
	if s.opts.Record {
		record := Recorded{
			Path: r.URL.Path, Header: r.Header.Clone(), Body: req.body,
			Model: req.Model, System: req.System, Tools: req.Tools, Turn: req.turn(), Last: req.last(),
		}
		if chosen != nil {
			record.Line = chosen.line
		}
		s.recorded = append(s.recorded, record)
	}
	return chosen
}

// refuse answers with an error of the protocol.
func refuse(w http.ResponseWriter, proto protocol, status int, typ, message string) {
	fail(w, proto, &scriptError{Status: status, Type: typ, Message: message})
}

func fail(w http.ResponseWriter, proto protocol, e *scriptError) {
	if after := time.Duration(e.RetryAfter); after > 0 {
		if after%time.Second == 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(int64(after/time.Second), 10))
		} else {
			w.Header().Set("Retry-After-Ms", strconv.FormatInt(after.Milliseconds(), 10))
		}
	}
	w.Header().Set("Content-Type", "application/json")
	for name, value := range e.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(e.Status)
	_, _ = w.Write(proto.failure(e.Type, e.Code, e.Message)) // a client that is gone needs no answer
}
