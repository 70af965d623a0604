package page

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	_ "time/tzdata"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/search"
)

const greet = "```xml\n" + `<directive name="greet" version="1.0.0"><metadata><description>Greet somebody</description><limits turns="3" /><model tier="fast" /></metadata>
<inputs><input name="who" type="string" required="true">Whom</input><input name="how" type="string" enum="loud,low" default="low" /><input name="key" type="string" secret="true" /></inputs>
<outputs><output name="words" type="string" /></outputs></directive>` + "\n```\n\nGreet {input:who}.\n"

// below is the address of something of a thread.
func below(id thread.ID, rest string) string {
	return "/ui/api/threads/" + url.PathEscape(string(id)) + rest
}

// newBusy is a page over a project with a thread that has worked.
func newBusy(t *testing.T) (*desk, *scene, thread.ID) {
	t.Helper()
	s := newScene(t, map[string]string{".ai/directives/review/greet.md": greet, ".ai/directives/broken.md": "```xml\n<directive\n```\n"})
	id := s.Start("review/greet")
	s.Record(id, func(w *transcript.Writer) error {
		for i := range 4 {
			if err := w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: fmt.Sprintf("part %d ", i)}); err != nil {
				return err
			}
		}
		if err := w.Append(thread.EventToolCallResult, transcript.ToolCallResult{Turn: 1, CallID: "c", Tool: "rye/file-system/read", Text: "no such file", IsError: true}); err != nil {
			return err
		}
		return w.Append(thread.EventSystemPrompt, transcript.SystemPrompt{Text: strings.Repeat("long ", 10_000) + "end"})
	})
	s.Turn(id, 1)
	return newDesk(s), s, id
}

// Each request of the API answers with what it is for.
func TestAnswers(t *testing.T) {
	t.Parallel()
	d, s, id := newBusy(t)
	html := []byte("<img src=x onerror=alert(1)>")
	sum := sha256.Sum256(html)
	name := hex.EncodeToString(sum[:])
	if _, err := s.Project.Control.Threads.Records.Of(id).Artifacts().Write(name, html); err != nil {
		t.Fatal(err)
	}
	s.InIndex = search.Page{Results: []search.Hit{
		{ID: "agent/threads/review/greet/" + strings.TrimPrefix(string(id), "review/"), Type: item.Knowledge, Preview: "it said so"},
		{ID: "agent/threads/review/greet/none-1", Type: item.Knowledge, Preview: "deleted since"},
	}}
	token := bearer(d.Token(false))
	list, err := s.Project.Control.Threads.Records.Of(id).Artifacts().List()
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	tests := []struct {
		name, path string
		status     int
		has        []string
	}{
		{"session", "/ui/api/session", 200, []string{`"project":"here"`, `"cancel_thread"`, `"read_only":false`}},
		{"board", "/ui/api/board", 200, []string{`"whole":true`, `"key":"` + string(id) + `"`}},
		{"board of an old server", "/ui/api/board?since=ABCDEFGHIJ.1.", 200, []string{`"whole":true`}},
		{"board of another project", "/ui/api/board?project=there", 400, []string{`"code":"no_project"`}},
		{"thread", below(id, ""), 200, []string{`"status":"running"`, `"chain_length":1`, `"receipt":false`, `"damaged":"`}},
		{"no such thread", below("review/other-1", ""), 404, []string{`"code":"not_found"`, `"nearest_ids"`}},
		{"id that is none", "/ui/api/threads/..%2F..%2Fetc", 400, []string{`"code":"bad_id"`}},
		{"timeline", below(id, "/timeline"), 200, []string{`"thread_id":"` + string(id) + `"`, `"kind":"tool"`}},
		{"timeline of the tree", below(id, "/timeline?tree=1"), 200, []string{`"timelines":[`}},
		{"spend", below(id, "/spend"), 200, []string{`"own":`}},
		{"transcript", below(id, "/transcript"), 200, []string{`"text":"part 0 part 1 part 2 part 3 "`, `"at_end":true`, `"cut":true`, `…"`}},
		{"transcript behind an event", below(id, "/transcript?after=2"), 200, []string{`"first":3,"next":3`}},
		{"transcript in front of an event", below(id, "/transcript?before=3"), 200, []string{`"first":1,"next":2`, `"at_start":true`}},
		{"end of the transcript", below(id, "/transcript?tail=1&max=10"), 200, []string{`"first":3,"next":3`, `"at_start":false`}},
		{"found in the transcript", below(id, "/transcript?q=SUCH+file"), 200, []string{`"seq":2`, `"events":[{"timestamp"`}},
		{"not found in the transcript", below(id, "/transcript?q=nothing+of+it"), 200, []string{`"events":[],`}},
		{"transcript of nonsense", below(id, "/transcript?after=x"), 400, []string{`"after is no number`}},
		{"event", below(id, "/events/3"), 200, []string{`long end"`}},
		{"no such event", below(id, "/events/7"), 404, []string{`"code":"not_found"`}},
		{"event of nonsense", below(id, "/events/-1"), 400, []string{`"code":"bad_arguments"`}},
		{"artifacts", below(id, "/artifacts"), 200, []string{`"name":"` + list[0].Name + `"`, `"bytes":28`}},
		{"artifact", below(id, "/artifacts/"+list[0].Name), 200, []string{string(html)}},
		{"no such artifact", below(id, "/artifacts/..%2Fthread.json"), 404, []string{`"code":"not_found"`}},
		{"diff", below(id, "/diff"), 500, []string{"no thread.json"}},
		{"verify", below(id, "/verify"), 200, []string{`"verified":true,"transcript":{"turns":0`}},
		{"receipt", below(id, "/receipt"), 400, []string{`"code":"no_signing_key"`}},
		{"export", below(id, "/export?tree=1"), 200, []string{string(id) + " {Chain:false Tree:true}"}},
		{"costs", "/ui/api/costs?by=directive&tz=60&since=all&until=2027-01-01", 200, []string{`"key":"review/greet"`, `"covers":"`}},
		{"costs of nonsense", "/ui/api/costs?by=moon", 400, []string{"directive, model or day"}},
		{"costs in a zone that changes its clocks", "/ui/api/costs/over-time?bucket=day&since=2026-09-05&until=2026-09-08&tz=-240&zone=America%2FSantiago", 200,
			[]string{`"at":["2026-09-05T00:00:00-04:00","2026-09-06T01:00:00-03:00","2026-09-07T00:00:00-03:00"]`}},
		{"costs in an unknown zone", "/ui/api/costs/over-time?bucket=day&since=2026-09-05&until=2026-09-06&tz=60&zone=..%2FMoon", 200, []string{`"at":["2026-09-05T00:00:00+01:00"]`}},
		{"costs in no zone", "/ui/api/costs?by=day&tz=9000", 400, []string{"minutes from UTC"}},
		{"costs over time", "/ui/api/costs/over-time?bucket=day&exact=1&since=all", 200, []string{`"lines":[`}},
		{"compare", "/ui/api/compare?a=" + url.QueryEscape(string(id)) + "&b=" + url.QueryEscape(string(id)), 200, []string{`"differ":[]`, `"rye/file-system/read":{"calls":1,"failed":1}`}},
		{"compare with nothing", "/ui/api/compare?a=" + url.QueryEscape(string(id)), 400, []string{`"code":"bad_id"`}},
		{"directives", "/ui/api/directives", 200, []string{`"id":"review/greet","space":"project"`, `"id":"broken"`, `"problem":"`, `"part":true`}},
		{"directive", "/ui/api/directives/review/greet", 200, []string{`"enum":["loud","low"]`, `"secret":true`, `"limits":{"turns":3}`, `"model":"fast"`, `"words"`}},
		{"directive that is none", "/ui/api/directives/broken", 200, []string{`"problem":"`, `"inputs":[]`}},
		{"no such directive", "/ui/api/directives/review/gret", 404, []string{`"nearest_ids":["review/greet"]`}},
		{"search", "/ui/api/search?q=greet", 200, []string{`"threads":[{"thread_id":"` + string(id) + `"`, `"text":"it said so"`}},
		{"search in what is written", "/ui/api/search?q=no+such+file", 200, []string{`"threads":[]`, `"text":"no such file"`}},
		{"search for nothing", "/ui/api/search?q=+", 400, []string{`"code":"invalid_query"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := d.ask(http.MethodGet, tt.path, "", token)
			body := w.Body.String()
			if w.Code != tt.status {
				t.Fatalf("status %d, want %d: %s", w.Code, tt.status, body)
			}
			for _, want := range tt.has {
				if !strings.Contains(body, want) {
					t.Errorf("no %s in %.2000s", want, body)
				}
			}
			if w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("headers %v", w.Header())
			}
		})
	}
	if log := d.log.String(); strings.Contains(log, strings.TrimPrefix(token, "Authorization: Bearer ")) || strings.Count(log, `"token":"`) != len(tests) {
		t.Errorf("%d requests of the token: %s", len(tests), log)
	}
}

// Operations of the table are called with their own parameters, as a person; those that
// are not for pages are not.
func TestOperations(t *testing.T) {
	t.Parallel()
	d, s, id := newBusy(t)
	token := bearer(d.Token(false))
	post := func(path, body string, status int, has ...string) {
		t.Helper()
		w := d.ask(http.MethodPost, "/ui/api/"+path, body, token)
		for _, want := range has {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: no %s in %s", path, want, w.Body)
			}
		}
		if w.Code != status {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, status, w.Body)
		}
	}
	named := fmt.Sprintf(`{"thread_id":%q`, id)
	post("call/rename_thread", named+`,"name":"of mine"}`, 200, `"name":"of mine"`)
	post("call/steer_thread", named+`,"message":"be quick"}`, 200, `"success":true`)
	post("call/get_status", `{"thread_id":"review/none-1"}`, 404, `"code":"not_found"`)
	post("call/get_status", `{"thread":`, 400, `"code":"bad_arguments"`)
	post("call/get_status", named+`,"never_heard_of":1}`, 400, `"code":"bad_arguments"`)
	post("call/wait_threads", `{"thread_ids":[]}`, 404, "no operation")
	post("call/send_note", `{}`, 404, "no operation")
	post("call/never_heard_of", `{}`, 404, "no operation")
	post("call/..%2Fstart", `{}`, 404, "no operation")
	post("start", `{"inputs":{}}`, 400, "directive is missing")
	post("start", `{"directive":"review/greet","item_type":"tool"}`, 400, `"code":"bad_arguments"`)
	post("start", `{"directive":"rye/shell/bash","inputs":{"command":"id"},"dry_run":true}`, 404, `"code":"not_found"`)
	post("start", `{"directive":"review/none"}`, 404, `"nearest_ids"`)
	if !strings.Contains(d.log.String(), `"operation":"call steer_thread"`) || !strings.Contains(d.log.String(), `"about":"`+string(id)+`"`) {
		t.Errorf("log %s", d.log)
	}
	s.End(id, thread.Outcome{State: thread.Completed, Result: "Hello."})
	post("threads/"+url.PathEscape(string(id))+"/plan-delete", `{"force":true}`, 200, `"dry_run":true`, `"threads":1`)
	post("call/delete_thread", named+`,"confirm":true}`, 200, `"dry_run":true`) // the deletion shown was with force
	post("call/delete_thread", named+`,"confirm":true,"force":true}`, 200, `"threads":1`)
	post("call/get_status", named+`}`, 404, "deleted")
}

// TestAttackReadOnlyPage: a page that may only look sends every change there is, and those of other clients. Each is refused and in the log, and nothing has changed.
func TestAttackReadOnlyPage(t *testing.T) {
	t.Parallel()
	d, s, id := newBusy(t)
	look := d.Token(true)
	paths := []string{"start", "threads/" + url.PathEscape(string(id)) + "/plan-delete", "board", "session", "threads/" + url.PathEscape(string(id)) + "/export"}
	full := d.ask(http.MethodGet, "/ui/api/session", "", bearer(d.Token(false)))
	var session Session
	if err := json.Unmarshal(full.Body.Bytes(), &session); err != nil || len(session.Operations) < 15 {
		t.Fatalf("%v: %s", err, full.Body)
	}
	for _, name := range session.Operations {
		paths = append(paths, "call/"+name)
	}
	for _, path := range paths {
		w := d.ask(http.MethodPost, "/ui/api/"+path, fmt.Sprintf(`{"thread_id":%q,"thread_ids":[%q],"message":"x","name":"x","directive":"review/greet"}`, id, id), bearer(look))
		if w.Code != http.StatusForbidden || codeOf(t, w) != "read_only" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if n := strings.Count(d.log.String(), `"read_only":true`); n != len(paths) {
		t.Errorf("%d of %d are in the log", n, len(paths))
	}
	rec, err := s.Store.Get(s.Ctx, id)
	if err != nil || rec.Status != thread.Running || rec.Name != "" || rec.Unread > 0 || !rec.CancelRequestedAt.IsZero() {
		t.Errorf("%+v %v", rec, err)
	}
	var looks Session
	if err := json.Unmarshal(d.ask(http.MethodGet, "/ui/api/session", "", bearer(look)).Body.Bytes(), &looks); err != nil || !looks.ReadOnly || len(looks.Operations) > 0 {
		t.Errorf("%v %+v", err, looks)
	}
}

// TestAttackArtifactAsMarkup: a thread leaves an artifact that is a web page with a script. It is served as bytes to be saved, under a policy that runs nothing and shows nothing.
func TestAttackArtifactAsMarkup(t *testing.T) {
	t.Parallel()
	d, s, id := newBusy(t)
	html := []byte("<!doctype html><script>alert(document.domain)</script>")
	sum := sha256.Sum256(html)
	if _, err := s.Project.Control.Threads.Records.Of(id).Artifacts().Write(hex.EncodeToString(sum[:]), html); err != nil {
		t.Fatal(err)
	}
	list, err := s.Project.Control.Threads.Records.Of(id).Artifacts().List()
	if err != nil {
		t.Fatal(err)
	}
	w := d.ask(http.MethodGet, below(id, "/artifacts/"+list[0].Name), "", bearer(d.Token(true)))
	h := w.Header()
	kind := h.Get("Content-Type")
	if w.Code != http.StatusOK || kind != "application/octet-stream" && kind != "text/plain; charset=utf-8" || h.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.HasPrefix(h.Get("Content-Disposition"), "attachment; ") || h.Get("Content-Security-Policy") != filePolicy {
		t.Errorf("%d %v", w.Code, h)
	}
}

// hostileNames are what nothing should be called.
var hostileNames = []string{
	"../../etc/passwd", "..", ".", "/", "a//b", "\x00", "a\x00b", "a\nb", "a\r\nSet-Cookie: x=1", "\u202egnp.exe", "\u2066a\u2069", "\x1b[2J\x1b]0;x\x07",
	"<img src=x onerror=alert(1)>", `" onclick="`, "\xff\xfe", strings.Repeat("a", 4096), strings.Repeat("../", 1000), "%2e%2e%2f", "%00", "CON", "a?b#c", "*", "[", "{", `\`,
}

// Names of nonsense are refused everywhere as names that there are not, and come into no
// header and into the log only as signs that do nothing.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	d, _, id := newBusy(t)
	token := bearer(d.Token(false))
	for _, name := range hostileNames {
		in := url.PathEscape(name)
		for _, request := range []string{
			"threads/" + in, "threads/" + in + "/transcript", "threads/" + in + "/export", "threads/" + url.PathEscape(string(id)) + "/artifacts/" + in,
			"threads/" + url.PathEscape(string(id)) + "/events/" + in, "directives/" + in, "compare?a=" + url.QueryEscape(name), "board?project=" + url.QueryEscape(name),
			"nothing/" + in, "threads/" + url.PathEscape(string(id)) + "/transcript?after=" + url.QueryEscape(name),
		} {
			w := d.ask(http.MethodGet, "/ui/api/"+request, "", token)
			if w.Code == http.StatusMovedPermanently || w.Code == http.StatusTemporaryRedirect { // a path that is not clean
				continue
			}
			if w.Code < 400 || w.Code >= 500 {
				t.Errorf("%.200q: %d %.300s", request, w.Code, w.Body)
			}
			if w.Header().Get("Set-Cookie") != "" || !utf8.Valid(w.Body.Bytes()) || w.Body.Len() > 6000 {
				t.Errorf("%.200q: %v, %d bytes", request, w.Header(), w.Body.Len())
			}
		}
		w := d.ask(http.MethodPost, "/ui/api/call/"+in, "{}", token)
		if w.Code == http.StatusOK {
			t.Errorf("operation %.100q: %d", name, w.Code)
		}
	}
	for line := range strings.Lines(d.log.String()) {
		if strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\x00\x1b\r\u202e\u2066") || len(line) > 2000 {
			t.Errorf("log %.300q", line)
		}
	}
}

// FuzzBodies: any body that comes is answered as JSON, and a start that is taken has
// one directive.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `"x"`, `{"directive":"a"}`, `{"directive":"a","inputs":{"b":[1]}}`, `{"directive":1}`, `{"directive":"a"} {}`, `{"directive":"a","directive":"b"}`,
		`{"limits":{"turns":1e400}}`, `{"code":"x"}`, `{"force":true}`, strings.Repeat(`{"inputs":`, 100), "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var in StartRequest
		if err := decode(body, &in); err == nil {
			again, err := json.Marshal(in)
			if err != nil {
				t.Fatalf("%q was taken and cannot be written: %v", body, err)
			}
			var same StartRequest
			if err := decode(again, &same); err != nil || same.Directive != in.Directive {
				t.Fatalf("%q is %q: %v", body, again, err)
			}
		}
		d := newDesk(noProjects{})
		token := bearer(d.Token(false))
		for _, path := range []string{"start", "exchange", "threads/a-1/plan-delete", "call/steer_thread"} {
			w := d.ask(http.MethodPost, "/ui/api/"+path, string(body), token)
			if w.Code < 400 || !json.Valid(w.Body.Bytes()) {
				t.Fatalf("%s %q: %d %s", path, body, w.Code, w.Body)
			}
		}
	})
}

// What is long is cut until it is not, and stays JSON.
func TestShorten(t *testing.T) {
	t.Parallel()
	many := `[` + strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("é", 3000)+`",`, 500), ",") + `]`
	for name, raw := range map[string]string{
		"short": `{"a":"b"}`, "long": `{"a":"` + strings.Repeat("é", 20_000) + `","n":12345678901234567890}`, "many": many,
		"numbers": `[` + strings.TrimSuffix(strings.Repeat("1,", 200_000), ",") + `]`, "none": `{"a":` + strings.Repeat("x", longText),
	} {
		short, cut := shorten(json.RawMessage(raw))
		if !json.Valid(short) || cut != (name != "short") || len(short) > longValue || !utf8.Valid(short) {
			t.Errorf("%s: cut %t, %d bytes: %.100s", name, cut, len(short), short)
		}
		if name == "long" && (!strings.Contains(string(short), "é…\"") || !strings.Contains(string(short), "12345678901234567890")) {
			t.Errorf("%s: %s", name, short[len(short)-100:])
		}
	}
}
