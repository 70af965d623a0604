package scripted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a script and returns a function that posts a body.
func serve(t *testing.T, script string) (*Server, func(path, body string) (int, string)) {
	t.Helper()
	parsed, err := Parse("s.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := Serve(context.Background(), parsed, Options{Record: true})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server, func(path, body string) (int, string) {
		resp, err := (&http.Client{Transport: transport}).Post(server.BaseURL()+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return resp.StatusCode, string(text)
	}
}

// said is a request of one user message.
func said(text string) string {
	return fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":%q}]}`, text)
}

const messages = "/v1/messages"

func TestFirstMatchAnswers(t *testing.T) {
	t.Parallel()
	server, post := serve(t, `
turns:
  - {match: {first: apple}, times: 1, text: once}
  - {match: {first_regex: "^app"}, text: again}
  - {match: {last_regex: "p[e]ar", model: m}, text: pear}
  - {match: {model: other}, text: never}
`)
	for _, test := range []struct{ ask, want string }{
		{"apple", "once"}, {"apple", "again"}, {"a pear", "pear"},
	} {
		if status, body := post(messages, said(test.ask)); status != 200 || !strings.Contains(body, `"text":"`+test.want+`"`) {
			t.Errorf("%s: status %d, %s", test.ask, status, body)
		}
	}
	status, body := post(messages, said("a plum"))
	if status != 500 || !strings.Contains(body, "no turn of the script s.yaml matches answer 1; the last message is: a plum") {
		t.Errorf("status %d, %s", status, body)
	}
	recorded := server.Requests()
	if len(recorded) != 4 || recorded[1].Line != 4 || recorded[3].Line != 0 || recorded[2].Last != "a pear" || recorded[2].Turn != 1 {
		t.Errorf("recorded %+v", recorded)
	}
}

func TestTimesHoldsForManyAtOnce(t *testing.T) {
	t.Parallel()
	_, post := serve(t, "turns: [{times: 3, text: early}, {text: late}]")
	var wg sync.WaitGroup
	var mu sync.Mutex
	early := 0
	for range 12 {
		wg.Go(func() {
			if _, body := post(messages, said("x")); strings.Contains(body, "early") {
				mu.Lock()
				defer mu.Unlock()
				early++
			}
		})
	}
	wg.Wait()
	if early != 3 {
		t.Errorf("%d early answers, want 3", early)
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	conversation := func(result string) string {
		return fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":"part: two"},`+
			`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"n","input":{}}]},`+
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":%q}]}]}`, result)
	}
	for _, test := range []struct{ text, result, want string }{
		{`{{ first "part: (\\w+)" }}`, "", "two"},
		{`{{ first "part" }}`, "", "part"},
		{`{{ .Turn }} {{ .Model }}`, "", "2 m"},
		{`{{ (result 0).a }} {{ (result -1).a }}`, `{"a":1}`, "1 1"},
		{`{{ result 0 }}`, "plain", "plain"},
		{`{{ last "(p.)" }}`, "plain", "pl"},
		{`{{ results "id" | toJSON }}`, `{"id":1,"x":[{"id":2},{"id":1}],"b":{"id":{"c":3}}}`, `[1,{"c":3},2]`},
		{`{{ results "none" | toJSON }}`, "{}", "[]"},
		{`{{ index (results "a") 1 }} of {{ len (results "a") }}`, `[{"a":1},{"a":[2]}]`, "[2] of 2"},
		{`{{ (index (result 0) "a").b }}`, `{"a":{"b":true}}`, "true"},
		{`{{ printf "%s-%03d" .Model 7 }}{{/* nothing */}}`, "", "m-007"},
		{`{{ result 0 | len }} {{ len "é" }} {{ "text" }} {{ 1.5 }}`, "plain", "5 2 text 1.5"},
		{`{{ (result 0).none }}`, `{"none":null}`, "null"},
		{`{{ range results "o" }}{{ .p }}:{{ .n }};{{ else }}none{{ end }}`, `[{"o":{"p":"a","n":1}},{"o":{"p":"b","n":2}}]`, "a:1;b:2;"},
		{`{{ range results "o" }}{{ . }}{{ else }}none {{ .Turn }}{{ end }}`, "{}", "none 2"},
		{`{{ range result 0 }}{{ . }},{{ end }}`, `{"b":2,"a":1}`, "1,2,"},
		{`{{ with results "s" }}{{ printf "$%.2f" (index . 0) }}{{ end }}{{ with results "t" }}no{{ end }}`, `{"s":1.5}`, "$1.50"},
		{`{{ if (result 0).a }}yes{{ else if (result 0).b }}second{{ else }}no{{ end }}`, `{"a":0,"b":true}`, "second"},
	} {
		_, post := serve(t, fmt.Sprintf("turns: [{tool_calls: [{name: n, input_json: %q}]}]", test.text))
		status, body := post(messages, conversation(test.result))
		if got := partial(body); status != 200 || got != test.want {
			t.Errorf("%s: got %q (status %d), want %q", test.text, got, status, test.want)
		}
	}
	for _, text := range []string{`{{ .Turns }}`, `{{ if result 9 }}{{ end }}`, `{{ (result 0).none }}`, `{{ result 9 }}`, `{{ first "zzz" }}`, `{{ first "(" }}`,
		`{{ result "0" }}`, `{{ result }}`, `{{ first 1 }}`, `{{ index (result 0) 0 }}`, `{{ len 1 }}`, `{{ printf 1 }}`, `{{ index 1 }}`} {
		_, post := serve(t, fmt.Sprintf("turns: [{text: %q}]", text))
		if status, body := post(messages, conversation("{}")); status != 500 || !strings.Contains(body, "s.yaml:1: text:") {
			t.Errorf("%s: status %d, %s", text, status, body)
		}
	}
}

// partial joins the pieces of the tool input in an event stream.
func partial(stream string) string {
	var out strings.Builder
	for line := range strings.Lines(stream) {
		if _, rest, ok := strings.Cut(line, `"partial_json":`); ok {
			var piece string
			if _, err := fmt.Sscanf(rest, "%q", &piece); err == nil {
				out.WriteString(piece)
			}
		}
	}
	return out.String()
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	_, post := serve(t, "turns: [{text: x}]")
	for _, path := range []string{messages, "/v1/chat/completions"} {
		for _, body := range []string{"", "{", `{"messages":[]}`, `{"stream":true,"messages":5}`, `{"stream":true,"messages":[{"role":"user","content":5}]}`} {
			if status, text := post(path, body); status != 400 || !strings.Contains(text, "invalid_request_error") {
				t.Errorf("%s %s: status %d, %s", path, body, status, text)
			}
		}
	}
	if status, _ := post("/v1/other", "{}"); status != 404 {
		t.Errorf("status %d", status)
	}
}

// TestCloseWhileHanging: closing ends what hangs, and can be done twice.
func TestCloseWhileHanging(t *testing.T) {
	t.Parallel()
	parsed, err := Parse("s.yaml", []byte("turns: [{text: long enough for some events, cut_after: 1, hang: true}]"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server, err := Serve(ctx, parsed, Options{})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Post(server.BaseURL()+messages, "", strings.NewReader(said("x")))
	if err != nil {
		t.Fatal(err)
	}
	cancel() // as good as Close
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	_ = resp.Body.Close()
	for range 2 {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(server.BaseURL(), "http://")); err == nil {
		_ = conn.Close()
		t.Error("the server still listens")
	}
	if len(server.Requests()) != 0 {
		t.Error("recorded without being asked to")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"stream":true,"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"text":"a"}]}]}]}`)
	f.Add(`{"stream":true,"messages":[{"role":"tool","content":"Error: x"},{"role":"assistant","tool_calls":[{}]}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		for path, proto := range protocols() {
			req, err := proto.decode([]byte(body))
			if err != nil {
				continue
			}
			if req.turn() < 1 {
				t.Errorf("%s: turn %d", path, req.turn())
			}
			_, _, _ = req.first(), req.last(), req.toolResults()
		}
	})
}

// TestRaw: what keeps to no protocol is sent as it is written, whole or cut.
func TestRaw(t *testing.T) {
	t.Parallel()
	server, post := serve(t, `
turns:
  - {match: {last: whole}, raw: {status: 502, headers: {content-type: text/html}, body: "<html>"}}
  - {match: {last: header}, error: {status: 429, type: t, message: m, headers: {x-ratelimit-reset: "5"}}}
  - {raw: {body: "half an answer", cut_after: 4}}
`)
	if status, body := post(messages, said("whole")); status != http.StatusBadGateway || body != "<html>" {
		t.Errorf("status %d, %s", status, body)
	}
	resp, err := http.Post(server.BaseURL()+messages, "application/json", strings.NewReader(said("header")))
	if err != nil || resp.Header.Get("X-Ratelimit-Reset") != "5" {
		t.Fatalf("%+v, %v", resp, err)
	}
	_ = resp.Body.Close()
	resp, err = http.Post(server.BaseURL()+messages, "application/json", strings.NewReader(said("x")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if got, err := io.ReadAll(resp.Body); string(got) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v", got, err)
	}
	http.DefaultClient.CloseIdleConnections()
}
