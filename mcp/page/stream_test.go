package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// served is a page that a server serves.
type served struct {
	t     testing.TB
	page  *Page
	url   string
	token string
	end   func() // of the server
}

func serve(t testing.TB, projects Projects) *served {
	t.Helper()
	ended, end := context.WithCancel(context.Background())
	s := &served{t: t, end: end}
	s.page = New(Options{Projects: projects, Now: time.Now, Log: zerolog.Nop(), Ended: ended.Done()})
	s.token = s.page.Token(true)
	server := httptest.NewServer(s.page)
	s.url = server.URL
	t.Cleanup(func() {
		end()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections() //nolint:forcetypeassert // it is one
		server.Close()
	})
	return s
}

// reader reads the lines of a stream.
type reader struct {
	t     testing.TB
	lines *bufio.Scanner
	body  io.Closer
}

func (s *served) stream(path string) *reader {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 8<<20)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/x-ndjson" {
		s.t.Fatalf("%s: %s %v", path, resp.Status, resp.Header)
	}
	return &reader{t: s.t, lines: lines, body: resp.Body}
}

// next is the next line that is no beat, or false at the end.
func (r *reader) next(into any) bool {
	for r.lines.Scan() {
		if bytes.HasPrefix(r.lines.Bytes(), []byte(`{"beat":`)) {
			continue
		}
		if err := json.Unmarshal(r.lines.Bytes(), into); err != nil {
			r.t.Errorf("%.300s: %v", r.lines.Bytes(), err)
		}
		return true
	}
	return false
}

// A stream of the board begins where a page was, tells what changes, and ends with the
// server.
func TestBoardStream(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	id := s.Start("review/one")
	server := serve(t, s)
	first := server.stream("/ui/api/board?stream=1")
	var b board.Board
	if !first.next(&b) || !b.Whole || len(b.Rows) != 1 {
		t.Fatalf("%+v", b)
	}
	since := b.Version
	s.Turn(id, 2)
	for b.Rows == nil || b.Rows[0].Turns != 2 {
		b = board.Board{}
		if !first.next(&b) {
			t.Fatal("the stream has ended")
		}
	}
	_ = first.body.Close()
	again := server.stream("/ui/api/board?stream=1&since=" + since)
	b = board.Board{}
	if !again.next(&b) || b.Whole || len(b.Rows) != 1 || b.Rows[0].Turns != 2 {
		t.Errorf("since %s: %+v", since, b)
	}
	unknown := server.stream("/ui/api/board?stream=1&since=ABCDEFGHIJ.3.")
	b = board.Board{}
	if !unknown.next(&b) || !b.Whole {
		t.Errorf("since a server that is gone: %+v", b)
	}
	server.end()
	for again.next(&b) || unknown.next(&b) { // both end
		b = board.Board{}
	}
}

// Two hundred pages are open at once. Each is told what changes, by one look, and nothing is
// left of them when they have gone.
func TestManyStreams(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	id := s.Start("review/one")
	server := serve(t, s)
	const pages = 200
	streams := make([]*reader, pages)
	for i := range streams {
		streams[i] = server.stream("/ui/api/board?stream=1")
		var b board.Board
		if !streams[i].next(&b) || !b.Whole {
			t.Fatalf("page %d: %+v", i, b)
		}
	}
	s.Turn(id, 7)
	for i, one := range streams {
		var b board.Board
		for b.Rows == nil || b.Rows[0].Turns != 7 {
			b = board.Board{}
			if !one.next(&b) {
				t.Fatalf("page %d: the stream has ended", i)
			}
		}
	}
	for _, one := range streams {
		_ = one.body.Close()
	}
	server.awaitStreams(0)
}

// awaitStreams waits until so many streams are open.
func (s *served) awaitStreams(want int) {
	s.t.Helper()
	deadline, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	for s.openStreams() != want {
		select {
		case <-deadline.Done():
			s.t.Fatalf("%d streams are open", s.openStreams())
		case <-time.After(time.Millisecond):
		}
	}
}

func (s *served) openStreams() int {
	s.page.streams.mu.Lock()
	defer s.page.streams.mu.Unlock()
	return s.page.streams.open
}

// There are as many streams as there may be. A further one is refused with the reason, and
// served when another has gone.
func TestTooManyStreams(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	server := serve(t, s)
	for range maxStreams {
		if !server.page.streams.enter() {
			t.Fatal("refused")
		}
	}
	d := &desk{Page: server.page}
	w := d.ask(http.MethodGet, "/ui/api/board?stream=1", "", bearer(server.token))
	if w.Code != http.StatusServiceUnavailable || codeOf(t, w) != "too_many_streams" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	server.page.streams.leave()
	var b board.Board
	if !server.stream("/ui/api/board?stream=1").next(&b) {
		t.Error("nobody is let in")
	}
}

// writePieces appends pieces as a thread would that gathered none of them.
func writePieces(file string, id thread.ID, n int) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	line := func(seq int, kind thread.EventType, payload string) error {
		_, err := fmt.Fprintf(f, `{"timestamp":"2026-01-02T03:04:05.000Z","thread_id":%q,"seq":%d,"event_type":%q,"payload":%s}`+"\n", id, seq, kind, payload)
		return err
	}
	for i := range n {
		err = errors.Join(err, line(i+2, thread.EventTokenDelta, fmt.Sprintf(`{"turn":1,"type":"text","text":"%04d "}`, i)))
	}
	return errors.Join(err, line(n+2, thread.EventCognitionOut, `{"turn":1,"blocks":[]}`), f.Close())
}

// A thread streams ten thousand pieces. A follower is told all of it, in few lines.
func TestStreamOfManyPieces(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	id := s.Start("review/one")
	s.Record(id, func(w *transcript.Writer) error {
		return w.Append(thread.EventSystemPrompt, transcript.SystemPrompt{Text: "begin"})
	})
	server := serve(t, s)
	following := server.stream(below(id, "/transcript?stream=1"))
	const pieces = 10_000
	wrote := make(chan error, 1)
	go func() { wrote <- writePieces(s.Project.Control.Threads.Transcript(id).Where(), id, pieces) }()
	var said strings.Builder
	lines, over, last := 0, false, int64(0)
	for !over {
		var page struct {
			Events []struct {
				Seq     int64
				Type    thread.EventType `json:"event_type"`
				Payload struct{ Text string }
			}
			Next int64
		}
		if !following.next(&page) {
			t.Fatal("the stream has ended")
		}
		lines++
		for _, e := range page.Events {
			if e.Seq <= last {
				t.Fatalf("event %d after %d", e.Seq, last)
			}
			last = e.Seq
			over = over || e.Type == thread.EventCognitionOut
			if e.Type == thread.EventTokenDelta {
				said.WriteString(e.Payload.Text)
			}
		}
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if words := strings.Fields(said.String()); len(words) != pieces || !slices.IsSorted(words) {
		t.Errorf("%d pieces arrived", len(words))
	}
	if lines > pieces/20 {
		t.Errorf("%d lines for %d pieces", lines, pieces)
	}
}

// A client that reads nothing is gone when its time to read is over, and holds up nobody.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	id := s.Start("review/one")
	s.Record(id, func(w *transcript.Writer) error {
		for range 800 {
			if err := w.Append(thread.EventSystemPrompt, transcript.SystemPrompt{Text: strings.Repeat("much ", 8000)}); err != nil {
				return err
			}
		}
		return nil
	})
	server := serve(t, s)
	server.page.writeTime = 50 * time.Millisecond
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n",
		below(id, "/transcript?stream=1&max=2000000"), strings.TrimPrefix(server.url, "http://"), server.token)
	if err != nil {
		t.Fatal(err)
	}
	server.awaitStreams(1)
	server.awaitStreams(0)
	var b board.Board
	if !server.stream("/ui/api/board?stream=1").next(&b) || !b.Whole {
		t.Errorf("others are held up: %+v", b)
	}
}
