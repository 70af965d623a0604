package telemetry

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func TestSends(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	for i := range 3 {
		w.ended(thread.Record{ThreadID: thread.ID(fmt.Sprintf("d-%d", i)), Directive: "d"})
	}
	running := w.ended(thread.Record{ThreadID: "d-9", Directive: "d"})
	rec := w.rows[running]
	rec.Status = thread.Running
	w.rows[running] = rec
	gone := w.ended(thread.Record{ThreadID: "d-8", Directive: "d"})
	delete(w.rows, gone)
	s := w.sender(r.URL+"/", "OTEL_EXPORTER_OTLP_HEADERS=Authorization=Basic%20abc, x-b=2 ,Content-Type=evil", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip")
	w.must(s.Run(t.Context()))
	if len(r.bodies) != 1 || len(r.spans) != 6 {
		t.Fatalf("%d requests, spans %v", len(r.bodies), r.spans)
	}
	req := r.requests[0]
	if req.URL.Path != "/v1/traces" || req.Method != http.MethodPost || req.Header.Get("Content-Type") != "application/json" ||
		req.Header.Get("Authorization") != "Basic abc" || req.Header.Get("X-B") != "2" || req.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%s %s %v", req.Method, req.URL, req.Header)
	}
	if due, _, err := w.due.List(w.now); err != nil || len(due) != 1 || due[0].ID != running {
		t.Errorf("due: %v, %v", due, err)
	}
	w.must(s.Run(t.Context()))
	if len(r.bodies) != 1 {
		t.Error("it is sent again")
	}
}

// A process that dies between the answer and its note sends the same spans again: the
// endpoint has each once.
func TestCrashSendsTheSame(t *testing.T) {
	t.Parallel()
	for _, point := range []thread.Crashpoint{BeforeSend, AfterSend} {
		w, r := newWorld(t), newReceiver(t)
		w.ended(thread.Record{ThreadID: "d-1", Directive: "d"})
		died := false
		w.crashpoints = func(p thread.Crashpoint) {
			if p == point && !died {
				died = true
				panic(p)
			}
		}
		func() {
			defer func() { _ = recover() }()
			_ = w.sender(r.URL).Run(t.Context())
		}()
		w.must(w.sender(r.URL).Run(t.Context()))
		if !died || len(r.spans) != 2 {
			t.Errorf("%s: died %v, spans %v", point, died, r.spans)
		}
		if len(r.bodies) == 2 && string(r.bodies[0]) != string(r.bodies[1]) {
			t.Errorf("%s\nand then\n%s", r.bodies[0], r.bodies[1])
		}
	}
}

func TestEndpointAnswers(t *testing.T) {
	t.Parallel()
	status := func(codes ...int) func(int, http.ResponseWriter) {
		return func(n int, w http.ResponseWriter) {
			code := codes[min(n, len(codes))-1]
			if code == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "7")
			}
			if code == http.StatusFound {
				w.Header().Set("Location", "/elsewhere")
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte("what the endpoint says \x1b[31m"))
		}
	}
	for name, tt := range map[string]struct {
		answer   func(int, http.ResponseWriter)
		requests int
		left     bool // it is due again
		waited   []time.Duration
		log      string
	}{
		"down and up":    {status(503, 502, 504, 200), 4, false, []time.Duration{1e9, 2e9, 4e9}, "traces sent"},
		"down":           {status(503), attempts, true, []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9}, ""},
		"asks to wait":   {status(429, 200), 2, false, []time.Duration{7e9}, "traces sent"},
		"bad request":    {status(400), 1, false, nil, "refuses"},
		"internal error": {status(500), 1, false, nil, "refuses"},
		"too large":      {status(413), 1, false, nil, "refuses"},
		"wrong key":      {status(401), 1, true, nil, ""},
		"no such path":   {status(404), 1, true, nil, ""},
		"redirect":       {status(302), 1, true, nil, ""},
		"partial success": {func(_ int, w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}`))
		}, 1, false, nil, `"rejected_spans":1,"said":"too old"`},
		"partial, as a number": {func(_ int, w http.ResponseWriter) { _, _ = w.Write([]byte(`{"partialSuccess":{"rejectedSpans":1}}`)) }, 1, false, nil, `"rejected_spans":1`},
		"no answer":            {func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusOK) }, 1, false, nil, "traces sent"},
		"an answer without end": {func(_ int, w http.ResponseWriter) {
			for range 4096 {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		}, 1, false, nil, "traces sent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := newWorld(t), newReceiver(t)
			r.answer = tt.answer
			w.ended(thread.Record{ThreadID: "d-1", Directive: "d"})
			err := w.sender(r.URL).Run(t.Context())
			if (err != nil) != tt.left || w.due.Count() != map[bool]int{true: 1}[tt.left] {
				t.Errorf("error %v, %d due", err, w.due.Count())
			}
			if len(r.bodies) != tt.requests || !slices.Equal(w.waited, tt.waited) || !strings.Contains(w.log.String(), tt.log) {
				t.Errorf("%d requests, waited %v, log %s", len(r.bodies), w.waited, w.log.String())
			}
			if strings.Contains(w.log.String(), "\x1b") {
				t.Error("escapes in the log")
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	r.Close()
	w.ended(thread.Record{ThreadID: "d-1", Directive: "d"})
	err := w.sender(r.URL+"?api_key=hidden", "OTEL_EXPORTER_OTLP_HEADERS=x=secret").Run(t.Context())
	if err == nil || w.due.Count() != 1 || strings.Contains(err.Error()+w.log.String(), "hidden") || strings.Contains(err.Error()+w.log.String(), "secret") {
		t.Errorf("%v\n%s", err, w.log.String())
	}
}

// An endpoint that takes the request and never answers costs no more than the time of a
// request, some times.
func TestSlowEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else nobody notices that the client has gone
		<-r.Context().Done()
	}))
	t.Cleanup(slow.Close)
	w.ended(thread.Record{ThreadID: "d-1", Directive: "d"})
	err := w.sender(slow.URL, "OTEL_EXPORTER_OTLP_TIMEOUT=20").Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "6 attempts") || len(w.waited) != attempts-1 || w.due.Count() != 1 {
		t.Errorf("%v, waited %v, %d due", err, w.waited, w.due.Count())
	}
}

// Somebody else sends: it is left to that process.
func TestOneSends(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	w.ended(thread.Record{ThreadID: "d-1", Directive: "d"})
	s := w.sender(r.URL)
	s.Lease = func() (life.Hold, error) { return nil, fmt.Errorf("other: %w", life.ErrHeld) }
	w.must(s.Run(t.Context()))
	if len(r.bodies) != 0 || w.due.Count() != 1 {
		t.Error("two send")
	}
}

// A thread that ends when the sender has looked, and before it lets go, is sent by it: whoever
// ended the thread has seen that somebody sends.
func TestEndedWhileSending(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	id := w.ended(thread.Record{ThreadID: "d-1", Directive: "d"})
	rec := w.rows[id]
	running := rec
	running.Status = thread.Running
	w.rows[id] = running
	s := w.sender(r.URL)
	s.Lease = func() (life.Hold, error) { return releasing(func() { w.rows[id] = rec }), nil }
	w.must(s.Run(t.Context()))
	if len(r.bodies) != 1 || w.due.Count() != 0 {
		t.Errorf("%d requests, %d due", len(r.bodies), w.due.Count())
	}
}

// releasing is a lease whose release does something first.
type releasing func()

func (f releasing) Release() error { f(); return nil }
func (releasing) End() error       { return nil }

// Many spans are several requests, each of a bounded size.
func TestBatches(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	for i := range 5 {
		var events []thread.Event
		for n := range int64(600) {
			events = append(events, event(t, n, thread.EventToolCallResult, map[string]any{"turn": n, "call_id": fmt.Sprint(n), "tool": "t", "text": ""}))
		}
		w.ended(thread.Record{ThreadID: thread.ID(fmt.Sprintf("d-%d", i)), Directive: "d"}, events...)
	}
	w.must(w.sender(r.URL).Run(t.Context()))
	if want := 5 * 602; len(r.spans) != want {
		t.Errorf("%d spans, want %d", len(r.spans), want)
	}
	for _, body := range r.bodies {
		if n := len(spansIn(body)); n > batchSpans || len(body) > batchBytes {
			t.Errorf("%d spans, %d bytes", n, len(body))
		}
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []thread.ID{"a/b/c-1", "a/b/c-1", "x-2"} {
		w.must(w.due.Note(id))
	}
	due, dropped, err := w.due.List(time.Now())
	if err != nil || len(due) != 2 || dropped != 0 {
		t.Fatal(due, dropped, err)
	}
	if due, dropped, err = w.due.List(time.Now().Add(late + time.Hour)); err != nil || len(due) != 0 || dropped != 2 || w.due.Count() != 0 {
		t.Error(due, dropped, err)
	}
	w.must(w.due.Done("never"))
	if due, _, err := NotesIn("/nowhere/at/all").List(noon); err != nil || len(due) != 0 {
		t.Error(due, err)
	}
}

// TestAttackDueFiles: somebody puts files of all kinds into the folder of notes. Nothing but what a thread's own file names is sent.
func TestAttackDueFiles(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	w.ended(thread.Record{ThreadID: "d-1", Directive: "d"})
	w.ended(thread.Record{ThreadID: "other-1", Directive: "d"})
	w.must(w.due.Done("other-1"))
	hostileFiles(t, w.due.Dir, "other-1")
	w.must(w.sender(r.URL).Run(t.Context()))
	if len(r.spans) != 2 { // the thread, and its start
		t.Errorf("%v", r.spans)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	const e = "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318/base/"
	for _, tt := range []struct {
		env      []string
		endpoint string // empty: off
		fails    string
	}{
		{nil, "", ""},
		{[]string{"OTEL_SERVICE_NAME=x", "OTEL_EXPORTER_OTLP_HEADERS=a=b"}, "", ""},
		{[]string{e}, "http://c:4318/base/v1/traces", ""},
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://c/x?k=1"}, "https://c/x?k=1", ""},
		{[]string{e, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://t"}, "http://t/", ""},
		{[]string{e, "OTEL_SDK_DISABLED=True"}, "", ""},
		{[]string{e, "OTEL_TRACES_EXPORTER=none"}, "", ""},
		{[]string{e, "OTEL_TRACES_EXPORTER=zipkin"}, "", `"zipkin"`},
		{[]string{e, "OTEL_EXPORTER_OTLP_PROTOCOL=http/json"}, "http://c:4318/base/v1/traces", ""},
		{[]string{e, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, "", "http/json and http/protobuf are spoken"},
		{[]string{e, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}, "http://c:4318/base/v1/traces", ""},
		{[]string{e, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json"}, "http://c:4318/base/v1/traces", ""},
		{[]string{e, "OTEL_EXPORTER_OTLP_TIMEOUT=ten"}, "", "milliseconds"},
		{[]string{e, "OTEL_EXPORTER_OTLP_COMPRESSION=zstd"}, "", "gzip"},
		{[]string{e, "OTEL_EXPORTER_OTLP_HEADERS=secret"}, "", "name=value"},
		{[]string{e, "OTEL_EXPORTER_OTLP_HEADERS=a=secret%0d%0ax:y"}, "", "cannot be sent"},
		{[]string{e, "OTEL_EXPORTER_OTLP_HEADERS=a b=secret"}, "", "cannot be sent"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=c:4318"}, "", "no URL"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=file:///etc/passwd"}, "", "no URL"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://user:secret@c"}, "", "belong into"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://%zzsecret"}, "", "no URL"},
	} {
		s, wanted, err := SettingsFrom(getenv(tt.env...), "rye-mcp", "v1")
		if tt.fails != "" {
			if err == nil || !wanted || !strings.Contains(err.Error(), tt.fails) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: %v, %v", tt.env, wanted, err)
			}
			continue
		}
		if err != nil || wanted != (tt.endpoint != "") || s.Endpoint != tt.endpoint {
			t.Errorf("%q: %v, %q, %v", tt.env, wanted, s.Endpoint, err)
		}
	}
	s, _, err := SettingsFrom(getenv(e, "OTEL_SERVICE_NAME=mine", "OTEL_RESOURCE_ATTRIBUTES=service.name=no,team=a%2Cb",
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"), "rye-mcp", "v1")
	text, _ := json.Marshal(s.Resource)
	want := `[{"key":"service.name","value":{"stringValue":"mine"}},{"key":"service.version","value":{"stringValue":"v1"}},{"key":"team","value":{"stringValue":"a,b"}}]`
	if err != nil || string(text) != want || !s.Content {
		t.Errorf("%s, %v, %v", text, s.Content, err)
	}
}

// TestTimeoutIsBounded: whatever number the user's environment has, a request ends.
func TestTimeoutIsBounded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"": defaultTimeout, "1": time.Millisecond, "60000": maxTimeout, "60001": maxTimeout,
		"9999999999999999": maxTimeout, "9223372036854775807": maxTimeout,
	} {
		s, _, err := SettingsFrom(getenv("OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", "OTEL_EXPORTER_OTLP_TIMEOUT="+text), "rye-mcp", "v1")
		if err != nil || s.Timeout != want {
			t.Errorf("%q: %v, %v", text, s.Timeout, err)
		}
	}
}
