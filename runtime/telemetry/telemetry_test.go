package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/due"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records/recordstest"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func at(ms int64) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

// world is what a sender looks at.
type world struct {
	*testing.T
	rows        map[thread.ID]thread.Record
	transcripts map[thread.ID][]byte
	metas       map[thread.ID]thread.Meta
	due         due.Notes
	log         bytes.Buffer
	waited      []time.Duration
	now         time.Time
	crashpoints thread.Crashpoints
}

func newWorld(t *testing.T) *world {
	return &world{
		T: t, rows: map[thread.ID]thread.Record{}, transcripts: map[thread.ID][]byte{}, metas: map[thread.ID]thread.Meta{},
		due: NotesIn(t.TempDir()), now: noon.Add(time.Minute),
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// ended is a thread that ran for a second, with events.
func (w *world) ended(rec thread.Record, events ...thread.Event) thread.ID {
	w.Helper()
	if rec.Status == "" {
		rec.Status = thread.Completed
	}
	if rec.Kind == "" {
		rec.Kind = thread.KindDirective
	}
	if rec.CreatedAt.IsZero() {
		rec.CreatedAt = noon
	}
	rec.CompletedAt = rec.CreatedAt.Add(time.Second)
	w.rows[rec.ThreadID] = rec
	for i, e := range events {
		e.ThreadID, e.Seq = rec.ThreadID, int64(i+1)
		line, err := json.Marshal(e)
		w.must(err)
		w.transcripts[rec.ThreadID] = append(append(w.transcripts[rec.ThreadID], line...), '\n')
	}
	w.must(w.due.Note(rec.ThreadID))
	return rec.ThreadID
}

// event is one of a transcript, so many milliseconds after noon.
func event(t testing.TB, ms int64, typ thread.EventType, payload any) thread.Event {
	t.Helper()
	encoded, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	return thread.Event{Timestamp: at(ms), Type: typ, Payload: encoded}
}

func (w *world) Get(_ context.Context, id thread.ID) (thread.Record, error) {
	rec, ok := w.rows[id]
	if !ok {
		return rec, thread.ErrNotFound
	}
	return rec, nil
}

func (w *world) List(_ context.Context, f store.Filter) (rows []thread.Record, _ string, err error) {
	for _, rec := range w.rows {
		if rec.ParentID == f.ParentID {
			rows = append(rows, rec)
		}
	}
	slices.SortFunc(rows, func(a, b thread.Record) int { return strings.Compare(string(a.ThreadID), string(b.ThreadID)) })
	return rows, "", nil
}

// free is a lease that anybody can have.
type free struct{}

func (free) Release() error { return nil }
func (free) End() error     { return nil }

func (w *world) sender(endpoint string, env ...string) *Sender {
	w.Helper()
	env = append(env, "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint)
	s, wanted, err := SettingsFrom(getenv(env...), "rye-mcp", "v1")
	if err != nil || !wanted {
		w.Fatal(wanted, err)
	}
	return &Sender{
		Settings: s, Due: w.due, Rows: w, Records: recordstest.InMemory{Transcripts: w.transcripts, Metas: w.metas}, Place: "p", Version: "v1", Lease: func() (life.Hold, error) { return free{}, nil },
		Now: func() time.Time { return w.now }, Log: zerolog.New(&w.log), Crashpoints: w.crashpoints,
		Wait: func(_ context.Context, d time.Duration) error { w.waited = append(w.waited, d); return nil },
	}
}

func getenv(environ ...string) func(string) string {
	return func(name string) string {
		for _, entry := range environ {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// receiver is an endpoint that keeps what it is sent.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   [][]byte
	spans    map[string]int                     // times that a span came, by trace and span id
	answer   func(n int, w http.ResponseWriter) // of the n-th request, from 1; nil: 200
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{spans: map[string]int{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		unpacked, gzipErr := gzip.NewReader(bytes.NewReader(body))
		if gzipErr == nil {
			body, err = io.ReadAll(unpacked)
		}
		err = errors.Join(err, gzipErr)
	}
	if err != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	r.requests, r.bodies = append(r.requests, req), append(r.bodies, body)
	if r.answer != nil {
		r.answer(len(r.bodies), w)
		return
	}
	for _, s := range spansIn(body) {
		r.spans[s.TraceID+"/"+s.SpanID]++
	}
	_, _ = w.Write([]byte(`{"partialSuccess":{}}`))
}

// wireSpan is a span as it is read back.
type wireSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	StartTimeUnixNano, EndTimeUnixNano  string
	Kind                                int
	Attributes                          []struct {
		Key   string
		Value map[string]any
	}
	Status *struct {
		Code    int
		Message string
	}
	Links []struct{ TraceID, SpanID string }
}

func (s wireSpan) attribute(key string) any {
	for _, a := range s.Attributes {
		if a.Key == key {
			for _, v := range a.Value {
				return v
			}
		}
	}
	return nil
}

func spansIn(body []byte) (list []wireSpan) {
	var r struct {
		ResourceSpans []struct {
			ScopeSpans []struct{ Spans []wireSpan }
		}
	}
	if json.Unmarshal(body, &r) != nil {
		return nil
	}
	for _, rs := range r.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			list = append(list, ss.Spans...)
		}
	}
	return list
}
