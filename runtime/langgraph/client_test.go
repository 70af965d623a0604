package langgraph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/langgraph/langgraphtest"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"langgraph+http://127.0.0.1:2024":       "langgraph+http://127.0.0.1:2024",
		"langgraph+https://host/lg/":            "langgraph+https://host/lg",
		"langgraph+http://[::1]:2024":           "langgraph+http://[::1]:2024",
		"http://127.0.0.1:2024":                 "",
		"langgraph://127.0.0.1:2024":            "",
		"langgraph+file:///etc/passwd":          "",
		"langgraph+http://":                     "",
		"langgraph+http://:2024":                "",
		"langgraph+http://user:pw@host":         "",
		"langgraph+http://host/?x-api-key=s":    "",
		"langgraph+http://host#a":               "",
		"langgraph+http:host":                   "",
		"langgraph+http://host:port":            "",
		"langgraph+http://a\nb":                 "",
		"langgraph+langgraph+http://host":       "",
		"\tlanggraph+http://host":               "",
		"postgres://host/database?sslmode=none": "",
	} {
		place, err := langgraph.ParsePlace(text)
		if got := place.String(); err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("the error repeats what was given: %v", err)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"langgraph+http://127.0.0.1:2024": false, "langgraph+http://localhost": false, "langgraph+http://[::1]": false,
		"langgraph+https://host": false, "langgraph+http://host": true, "langgraph+http://10.0.0.1": true,
	} {
		place, err := langgraph.ParsePlace(text)
		if err != nil || place.Plain() != want {
			t.Errorf("%s: %v, %v", text, place.Plain(), err)
		}
	}
}

func client(t *testing.T, url string, change func(*langgraph.Options)) *langgraph.Client {
	t.Helper()
	place, err := langgraph.ParsePlace("langgraph+" + url)
	if err != nil {
		t.Fatal(err)
	}
	o := langgraph.Options{Place: place, Now: time.Now, Key: func(context.Context) (string, error) { return "lsv2_secret", nil }}
	if change != nil {
		change(&o)
	}
	c := langgraph.New(o)
	t.Cleanup(c.Close)
	return c
}

var (
	one   = uuid.MustParse("11111111-1111-5111-8111-111111111111")
	other = uuid.MustParse("22222222-2222-5222-8222-222222222222")
)

// TestThreads goes through the life of a thread there.
func TestThreads(t *testing.T) {
	t.Parallel()
	s := langgraphtest.New(t)
	c := client(t, s.URL, nil)
	ctx := t.Context()
	if err := c.Check(ctx); err != nil {
		t.Fatal(err)
	}
	if graphs, err := c.Graphs(ctx); err != nil || !reflect.DeepEqual(graphs, []string{"rye"}) {
		t.Fatalf("graphs %v, %v", graphs, err)
	}
	made, err := c.Create(ctx, one, map[string]any{"graph_id": "rye", "rye_id": "d-1"})
	if err != nil || made.Text("rye_id") != "d-1" || made.Graph() != "rye" {
		t.Fatalf("created %+v, %v", made, err)
	}
	again, err := c.Create(ctx, one, map[string]any{"graph_id": "other"})
	if err != nil || again.Graph() != "rye" {
		t.Fatalf("created again %+v, %v", again, err)
	}
	if _, err := c.Patch(ctx, one, map[string]any{"rye_status": "running"}); err != nil {
		t.Fatal(err)
	}
	said := []langgraph.Message{
		{Type: langgraph.Human, ID: "1", Content: "hi"},
		{Type: langgraph.AI, ID: "2", ToolCalls: []langgraph.ToolCall{{ID: "c", Name: "read", Args: map[string]any{"path": "a"}, Type: "tool_call"}}},
		{Type: langgraph.Tool, ID: "3", ToolCallID: "c", Name: "read", Content: "text", Status: "success"},
	}
	for range 2 { // sending again changes nothing
		if err := c.Append(ctx, one, "rye", said); err != nil {
			t.Fatal(err)
		}
	}
	if state, err := c.State(ctx, one); err != nil || !reflect.DeepEqual(state.Messages, said) {
		t.Fatalf("state %+v, %v", state, err)
	}
	copied, err := c.Copy(ctx, one)
	if err != nil || copied.ID == one || copied.Text("rye_id") != "d-1" {
		t.Fatalf("copied %+v, %v", copied, err)
	}
	if err := c.Replace(ctx, one, "rye", said[:1]); err != nil {
		t.Fatal(err)
	}
	if state, err := c.State(ctx, one); err != nil || len(state.Messages) != 1 {
		t.Fatalf("replaced %+v, %v", state, err)
	}
	if state, err := c.State(ctx, copied.ID); err != nil || len(state.Messages) != 3 {
		t.Fatalf("the copy has %+v, %v", state, err)
	}
	found, err := c.Search(ctx, map[string]any{"rye_id": "d-1"}, 0)
	if err != nil || len(found) != 2 || found[0].ID != one {
		t.Fatalf("found %+v, %v", found, err)
	}
	for range 2 {
		if err := c.Delete(ctx, one); err != nil {
			t.Fatal(err)
		}
	}
	for name, err := range map[string]error{
		"get": second(c.Get(ctx, one)), "state": second(c.State(ctx, one)), "copy": second(c.Copy(ctx, one)),
		"patch": second(c.Patch(ctx, one, nil)), "append": c.Append(ctx, one, "rye", said),
	} {
		if !errors.Is(err, langgraph.ErrNotFound) {
			t.Errorf("%s of what is gone: %v", name, err)
		}
	}
	for _, r := range s.Requests() {
		if r.Key != "lsv2_secret" {
			t.Errorf("%s %s came without the key", r.Method, r.Path)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestFaults holds what a status says about whether it is tried again.
func TestFaults(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{
		400: langgraph.ErrRefused, 401: langgraph.ErrDenied, 403: langgraph.ErrDenied, 404: langgraph.ErrNotFound, 408: langgraph.ErrUnreachable,
		409: langgraph.ErrBusy, 422: langgraph.ErrRefused, 429: langgraph.ErrUnreachable, 500: langgraph.ErrUnreachable, 503: langgraph.ErrUnreachable,
		301: langgraph.ErrNonsense, 302: langgraph.ErrNonsense, 304: langgraph.ErrNonsense,
	} {
		s := langgraphtest.New(t)
		s.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "no\x1b[31m\nno")
			return true
		})
		_, err := client(t, s.URL, nil).Get(t.Context(), one)
		var failed *langgraph.Error
		if !errors.Is(err, want) || !errors.As(err, &failed) || failed.Status != status || failed.After != 7*time.Second {
			t.Errorf("%d is %v", status, err)
		}
		if strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%d: %q has control characters", status, err)
		}
	}
}

// TestWords holds what of an error of the server is told.
func TestWords(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"Thread is busy": "Thread is busy", `{"detail":"Thread not found"}`: "Thread not found", `{"message":"m"}`: "m",
		`{"success":false,"error":{"issues":[{"path":["metadata"],"message":"Expected object"}]}}`: "[metadata]: Expected object",
		`{"detail":[{"msg":"x"}]}`: `{"detail":[{"msg":"x"}]}`, "": "",
	} {
		s := langgraphtest.New(t)
		s.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, body)
			return true
		})
		var failed *langgraph.Error
		if _, err := client(t, s.URL, nil).Get(t.Context(), one); !errors.As(err, &failed) || failed.Said != want {
			t.Errorf("%s is told as %v", body, err)
		}
	}
}

// TestUnreachable holds that who does not answer is found out, and that a context that
// ends is no fault of the server.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(release) })
	_, err := client(t, slow.URL, func(o *langgraph.Options) { o.Timeout = time.Millisecond }).Get(t.Context(), one)
	if !errors.Is(err, langgraph.ErrUnreachable) || !strings.Contains(err.Error(), "1ms") {
		t.Errorf("slow: %v", err)
	}
	drips := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "{")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(drips.Close)
	if _, err := client(t, drips.URL, func(o *langgraph.Options) { o.Timeout = 100 * time.Millisecond }).Get(t.Context(), one); !errors.Is(err, langgraph.ErrUnreachable) {
		t.Errorf("an answer that does not end: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the thread is cancelled")
	cancel(why)
	if _, err := client(t, slow.URL, nil).Get(ctx, one); !errors.Is(err, why) {
		t.Errorf("cancelled: %v", err)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	if _, err := client(t, closed.URL, nil).Get(t.Context(), one); !errors.Is(err, langgraph.ErrUnreachable) || strings.Contains(err.Error(), "threads/") {
		t.Errorf("closed: %v", err)
	}
	noKey := errors.New("no key")
	if _, err := client(t, slow.URL, func(o *langgraph.Options) {
		o.Key = func(context.Context) (string, error) { return "", noKey }
	}).Get(t.Context(), one); !errors.Is(err, noKey) {
		t.Errorf("no key: %v", err)
	}
}

// TestAttackMirrorAnswers: a mirror answers with endless bytes, a compressed bomb, garbage, other threads' ids and a redirect that would take the key elsewhere. Each is an error within bounds, and nobody else gets the key.
func TestAttackMirrorAnswers(t *testing.T) {
	t.Parallel()
	taken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(taken.Close)
	body := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for name, answer := range map[string]http.HandlerFunc{
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			chunk := []byte(strings.Repeat(" ", 1<<20))
			for {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
		"endless error": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for {
				if _, err := io.WriteString(w, "lsv2 "); err != nil {
					return
				}
			}
		},
		"compressed": func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				t.Error("a compressed answer is asked for")
			}
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "\x1f\x8b\x08")
		},
		"headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("a", 1<<20))
			_, _ = io.WriteString(w, "{}")
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, taken.URL, http.StatusTemporaryRedirect)
		},
		"garbage":   body("\x00\xff<html>"),
		"empty":     body(""),
		"null":      body("null"),
		"list":      body("[]"),
		"number id": body(`{"thread_id":3}`),
		"no uuid":   body(`{"thread_id":"../../assistants"}`),
		"urn":       body(`{"thread_id":"urn:uuid:` + one.String() + `"}`),
		"other":     body(`{"thread_id":"` + other.String() + `"}`),
		"metadata":  body(`{"thread_id":"` + one.String() + `","metadata":"x"}`),
		"deep":      body(strings.Repeat(`{"metadata":`, 200_000)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(answer)
			t.Cleanup(s.Close)
			c := client(t, s.URL, nil)
			for verb, err := range map[string]error{
				"get": second(c.Get(t.Context(), one)), "create": second(c.Create(t.Context(), one, nil)), "patch": second(c.Patch(t.Context(), one, nil)),
			} {
				if err == nil || strings.Contains(err.Error(), "lsv2_secret") || len(err.Error()) > 600 {
					t.Errorf("%s: %v", verb, err)
				}
			}
		})
	}
}

// TestWrongIDs holds the answers in which another thread's id is a lie.
func TestWrongIDs(t *testing.T) {
	t.Parallel()
	s := langgraphtest.New(t)
	answer := ""
	s.Fault(func(w http.ResponseWriter, _ *http.Request) bool { _, _ = io.WriteString(w, answer); return true })
	c := client(t, s.URL, nil)
	answer = `{"thread_id":"` + one.String() + `"}`
	if _, err := c.Copy(t.Context(), one); !errors.Is(err, langgraph.ErrNonsense) {
		t.Errorf("a copy with the id of what was copied: %v", err)
	}
	answer = `{"values":{"messages":[]},"checkpoint":{"thread_id":"` + other.String() + `"}}`
	if _, err := c.State(t.Context(), one); !errors.Is(err, langgraph.ErrNonsense) {
		t.Errorf("the state of another thread: %v", err)
	}
	many := make([]map[string]string, langgraph.PageSize+1)
	for i := range many {
		many[i] = map[string]string{"thread_id": uuid.NewString()}
	}
	text, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	answer = string(text)
	if _, err := c.Search(t.Context(), nil, 0); !errors.Is(err, langgraph.ErrNonsense) {
		t.Errorf("more than were asked for: %v", err)
	}
}

// TestStates reads messages in the forms that graphs write them in.
func TestStates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		messages string
		want     []langgraph.Message
	}{
		"text":     {`[{"type":"human","content":"hi","id":"1","additional_kwargs":{}}]`, []langgraph.Message{{Type: "human", ID: "1", Content: "hi"}}},
		"roles":    {`[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`, []langgraph.Message{{Type: "human", Content: "a"}, {Type: "ai", Content: "b"}}},
		"chunk":    {`[{"type":"AIMessageChunk","content":"a"}]`, []langgraph.Message{{Type: "ai", Content: "a"}}},
		"blocks":   {`[{"type":"human","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{}},"b",null,3]}]`, []langgraph.Message{{Type: "human", Content: "a\n[image_url]\nb"}}},
		"others":   {`[3,null,"x",[],{},{"type":"remove","id":"1"},{"type":"human","content":{"a":1}}]`, []langgraph.Message{{Type: "human"}}},
		"no list":  {`{"a":1}`, nil},
		"odd call": {`[{"type":"ai","content":"","tool_calls":{"a":1},"name":7,"id":8}]`, []langgraph.Message{{Type: "ai"}}},
	} {
		s := langgraphtest.New(t)
		s.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = fmt.Fprintf(w, `{"values":{"messages":%s},"checkpoint":null}`, c.messages)
			return true
		})
		state, err := client(t, s.URL, nil).State(t.Context(), one)
		if err != nil || !reflect.DeepEqual(state.Messages, c.want) {
			t.Errorf("%s: %+v, %v", name, state, err)
		}
	}
}

// FuzzState: whatever a server answers, reading it ends with a state or an error.
func FuzzState(f *testing.F) {
	f.Add(`{"values":{"messages":[{"type":"human","content":"hi"}]}}`)
	f.Add(`{"values":[],"checkpoint":{"checkpoint_id":"1"}}`)
	f.Add(`[`)
	answer := ""
	place, err := langgraph.ParsePlace("langgraph+http://127.0.0.1:2024")
	if err != nil {
		f.Fatal(err)
	}
	c := langgraph.New(langgraph.Options{Place: place, Transport: roundTrip(func() string { return answer })})
	f.Fuzz(func(t *testing.T, text string) {
		answer = text
		state, err := c.State(t.Context(), one)
		if err != nil && !errors.Is(err, langgraph.ErrNonsense) {
			t.Fatal(err)
		}
		for _, m := range state.Messages {
			if m.Type == "" {
				t.Fatalf("a message of no type: %+v", m)
			}
		}
	})
}

type roundTrip func() string

func (r roundTrip) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(r()))}, nil
}
