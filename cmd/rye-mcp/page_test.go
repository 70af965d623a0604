package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// lookedAt is a project whose threads greet, ask when they have had one turn, or are held.
const lookedAt = `
-- .ai/directives/greet.md --
` + "```xml" + `
<directive name="greet" version="1.0.0"><metadata><model tier="fast" /></metadata>
<inputs><input name="who" type="string" required="true">Whom</input></inputs></directive>
` + "```" + `

Greet {input:who}.
-- .ai/directives/loop.md --
` + "```xml" + `
<directive name="loop" version="1.0.0"><metadata><model tier="fast" /><limits turns="1" spend="0.1" />
<permissions><execute><tool>rye.file-system.ls</tool></execute></permissions></metadata></directive>
` + "```" + `

Go on.
-- .ai/directives/hang.md --
` + "```xml" + `
<directive name="hang" version="1.0.0"><metadata><model tier="fast" /></metadata></directive>
` + "```" + `

Be held.
-- .ai/directives/write.md --
` + "```xml" + `
<directive name="write" version="1.0.0"><metadata><model tier="fast" />
<permissions><execute><tool>rye.file-system.write</tool></execute></permissions></metadata></directive>
` + "```" + `

Write a note.
-- .ai/config/agent/resilience.yaml --
on_limit: {action: ask, deadline_seconds: 300}
-- model.yaml --
turns:
  - match: {last: This is your last turn}
    text: What I have.
  - match: {first: Go on, turn: 1}
    tool_calls:
      - {name: rye_file_system_ls, input: {path: .}}
  - match: {first: Write a note, turn: 1}
    tool_calls:
      - {name: rye_file_system_write, input: {path: note.txt, content: of a thread}}
  - text: Hello.
`

// pageServer is a rye-mcp that serves the page.
type pageServer struct {
	*place
	cmd   *exec.Cmd
	base  string // http://127.0.0.1:PORT
	token string
	log   string
}

var pageLine = regexp.MustCompile(`(?m)^page (http://[^/]+)/#token=([A-Z0-9]+)$`)

// ui starts rye-mcp ui, or another command that serves the page.
func (p *place) ui(env []string, command ...string) *pageServer {
	p.Helper()
	log, err := os.CreateTemp(filepath.Dir(p.dir), "page-*.log")
	p.noError(err)
	_ = log.Close()
	s := &pageServer{place: p, log: log.Name(), cmd: exec.Command(p.program, append(command, "--log-file", log.Name())...)}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = p.dir, slices.Concat(p.env, env), os.Stderr
	out, err := s.cmd.StdoutPipe()
	p.noError(err)
	p.noError(s.cmd.Start())
	p.Cleanup(s.end)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := pageLine.FindSubmatch(lines.Bytes()); m != nil {
			s.base, s.token = string(m[1]), string(m[2])
			return s
		}
	}
	p.Fatalf("rye-mcp %s serves no page", strings.Join(command, " "))
	return nil
}

func (s *pageServer) end() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(os.Interrupt)
		_ = s.cmd.Wait()
	}
}

// ask sends a request with the token, and headers that may replace it.
func (s *pageServer) ask(method, path, body string, headers ...string) (status int, answer []byte) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, strings.NewReader(body))
	s.noError(err)
	r.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	s.noError(err)
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	s.noError(err)
	return resp.StatusCode, answer
}

// get is what an address of the API answers.
func (s *pageServer) get(path string) []byte {
	s.Helper()
	status, answer := s.ask(http.MethodGet, "/ui/api/"+path, "")
	if status != http.StatusOK {
		s.Fatalf("%s: %d %s", path, status, answer)
	}
	return answer
}

func (s *pageServer) post(path, body string, into any) {
	s.Helper()
	status, answer := s.ask(http.MethodPost, "/ui/api/"+path, body)
	if status != http.StatusOK {
		s.Fatalf("%s %s: %d %s", path, body, status, answer)
	}
	s.noError(json.Unmarshal(answer, into))
}

// awaitRow follows the board until a thread is as wanted.
func (s *pageServer) awaitRow(id thread.ID, wanted func(*board.Row) bool) *board.Row {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/ui/api/board?stream=1", http.NoBody)
	s.noError(err)
	r.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := http.DefaultClient.Do(r)
	s.noError(err)
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var b board.Board
		s.noError(json.Unmarshal(lines.Bytes(), &b))
		for _, row := range b.Rows {
			if row.ThreadID == id && wanted(row) {
				return row
			}
		}
	}
	s.Fatalf("thread %s did not become as wanted: %v", id, lines.Err())
	return nil
}

// TestPage: a person starts, answers, stops and deletes threads on the page of the real
// program, reads what they did, and takes receipt and recording along. All of it is in the
// log, and the token is not.
func TestPage(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, lookedAt)
	p.mustCLI(p.dir, "keys", "generate")
	s := p.ui(nil, "ui", "--no-open")

	var started view.Started
	s.post("start", `{"directive":"greet","inputs":{"who":"Ada"},"request_key":"once"}`, &started)
	first := started.ThreadID
	s.awaitRow(first, func(r *board.Row) bool { return r.Status == thread.Completed })
	s.post("start", `{"directive":"greet","inputs":{"who":"Ada"},"request_key":"once"}`, &started)
	if started.ThreadID != first || !started.Existing {
		t.Errorf("started twice: %+v", started)
	}
	if status, answer := s.ask(http.MethodPost, "/ui/api/start", `{"directive":"greet"}`); status != http.StatusBadRequest || !bytes.Contains(answer, []byte("invalid_inputs")) {
		t.Errorf("without an input: %d %s", status, answer)
	}
	of := "threads/" + url.PathEscape(string(first))
	for path, want := range map[string]string{
		of: `"text":"` + "```xml", of + "/transcript": "Hello.", of + "/verify": `"verified":true`, of + "/timeline?tree=1": `"kind":"model"`,
		of + "/spend": `"own":[`, of + "/diff": "", "search?q=Hello": string(first),
	} {
		status, answer := s.ask(http.MethodGet, "/ui/api/"+path, "")
		if want == "" && status == http.StatusBadRequest {
			continue // it has no workspace
		}
		if status != http.StatusOK || !bytes.Contains(answer, []byte(want)) {
			t.Errorf("%s: %d %.500s", path, status, answer)
		}
	}
	receipt, recording := filepath.Join(p.dir, "receipt.json"), filepath.Join(p.dir, "greet.ryetest")
	p.noError(os.WriteFile(receipt, s.get(of+"/receipt"), 0o600))
	p.noError(os.WriteFile(recording, s.get(of+"/export"), 0o600))
	p.mustCLI(p.dir, "threads", "verify", "--receipt", receipt)
	p.mustCLI(p.dir, "replay", recording)

	s.answersAndStops()
	s.worksApart()

	// A server that was started again knows no token of the one before.
	s.end()
	log, err := os.ReadFile(s.log)
	p.noError(err)
	for _, want := range []string{`"about":"greet as thread ` + string(first) + `"`, `"operation":"call approve_thread"`, `"operation":"export"`} {
		if !bytes.Contains(log, []byte(want)) {
			t.Errorf("no %s in the log", want)
		}
	}
	if bytes.Contains(log, []byte(s.token)) {
		t.Error("the token is in the log")
	}
	again := p.ui(nil, "ui", "--no-open", "--read-only", "--port", s.base[strings.LastIndexByte(s.base, ':')+1:])
	if status, answer := again.ask(http.MethodGet, "/ui/api/session", "", "Authorization: Bearer "+s.token); status != http.StatusUnauthorized || !bytes.Contains(answer, []byte("started again")) {
		t.Errorf("the old token: %d %s", status, answer)
	}
	if status, answer := again.ask(http.MethodPost, "/ui/api/start", `{"directive":"greet"}`); status != http.StatusForbidden {
		t.Errorf("read-only: %d %s", status, answer)
	}
}

// answersAndStops answers a thread that asks, stops one that works, and deletes it.
func (s *pageServer) answersAndStops() {
	s.Helper()
	var started view.Started
	s.post("start", `{"directive":"loop"}`, &started)
	asks := s.awaitRow(started.ThreadID, func(r *board.Row) bool { return r.Asks })
	if asks.Question == nil || !slices.Contains(asks.Question.Options, thread.Finish) {
		s.Errorf("question %+v", asks.Question)
	}
	var approved struct {
		By string `json:"answered_by"`
	}
	s.post("call/approve_thread", fmt.Sprintf(`{"thread_id":%q,"decision":"finish"}`, started.ThreadID), &approved)
	if approved.By != "a person, on the page" {
		s.Errorf("answered by %q", approved.By)
	}
	s.awaitRow(started.ThreadID, func(r *board.Row) bool { return r.Status == thread.Completed })

	s.post("start", `{"directive":"hang"}`, &started)
	s.awaitRow(started.ThreadID, func(r *board.Row) bool { return r.Status == thread.Running })
	var answer struct{ Success bool }
	s.post("call/cancel_thread", fmt.Sprintf(`{"thread_ids":[%q]}`, started.ThreadID), &answer)
	s.awaitRow(started.ThreadID, func(r *board.Row) bool { return r.Status == thread.Cancelled })
	s.post("threads/"+url.PathEscape(string(started.ThreadID))+"/plan-delete", `{}`, &answer)
	s.post("call/delete_thread", fmt.Sprintf(`{"thread_id":%q,"confirm":true}`, started.ThreadID), &answer)
	if status, _ := s.ask(http.MethodGet, "/ui/api/threads/"+url.PathEscape(string(started.ThreadID)), ""); status != http.StatusNotFound {
		s.Errorf("a deleted thread: %d", status)
	}
}

// worksApart starts a thread with a workspace of its own, shows what it has changed and
// applies it.
func (s *pageServer) worksApart() {
	s.Helper()
	for _, args := range []string{"init -q", "add .ai", "-c user.name=Ada -c user.email=ada@example.org commit -q -m begin"} {
		cmd := exec.Command("git", strings.Fields(args)...)
		cmd.Dir, cmd.Env = s.dir, s.env
		if out, err := cmd.CombinedOutput(); err != nil {
			s.Logf("what works apart is not tested: git %s: %v %s", args, err, out)
			return
		}
	}
	var started view.Started
	s.post("start", `{"directive":"write","workspace":"worktree"}`, &started)
	s.awaitRow(started.ThreadID, func(r *board.Row) bool { return r.Status == thread.Completed })
	of := "threads/" + url.PathEscape(string(started.ThreadID))
	if diff := s.get(of + "/diff"); !bytes.Contains(diff, []byte(`"path":"note.txt"`)) || !bytes.Contains(diff, []byte(`+of a thread`)) {
		s.Errorf("diff %s", diff)
	}
	var applied struct{ Success bool }
	s.post("call/apply_thread", fmt.Sprintf(`{"thread_id":%q}`, started.ThreadID), &applied)
	if note, err := os.ReadFile(filepath.Join(s.dir, "note.txt")); err != nil || string(note) != "of a thread" {
		s.Errorf("applied %q: %v", note, err)
	}
}

// TestAttackPageFromElsewhere: pages of other ports and names of this machine, forms, and addresses with a token ask a server for what its own page may have. Each is refused, on a server for MCP clients too, and nothing starts.
func TestAttackPageFromElsewhere(t *testing.T) {
	t.Parallel()
	p := newPlace(t, lookedAt)
	s := p.ui(nil, "serve", "--http", "127.0.0.1:0")
	port := s.base[strings.LastIndexByte(s.base, ':')+1:]
	form := "Content-Type: application/x-www-form-urlencoded"
	for _, tt := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
	}{
		{"its own page", http.MethodGet, "/ui/api/session", "", []string{"Origin: " + s.base, "Sec-Fetch-Site: same-origin"}, 200},
		{"no token", http.MethodGet, "/ui/api/session", "", []string{"Authorization: "}, 401},
		{"a page of another port", http.MethodPost, "/ui/api/start", `{"directive":"greet"}`, []string{"Origin: http://127.0.0.1:1", "Sec-Fetch-Site: same-site"}, 403},
		{"a page of another name", http.MethodGet, "/ui/api/board", "", []string{"Origin: http://localhost:" + port}, 403},
		{"a page of no origin", http.MethodPost, "/ui/api/start", `{"directive":"greet"}`, []string{"Origin: null"}, 403},
		{"a name that was rebound", http.MethodGet, "/ui/api/session", "", []string{"Host: evil.example.com:" + port, "Origin: http://evil.example.com:" + port}, 403},
		{"its files under a name that was rebound", http.MethodGet, "/", "", []string{"Host: evil.example.com:" + port}, 403},
		{"a form", http.MethodPost, "/ui/api/start", "directive=greet", []string{form}, 415},
		{"a form of text", http.MethodPost, "/ui/api/start", `{"directive":"greet"}`, []string{"Content-Type: text/plain"}, 415},
		{"a token in the address", http.MethodGet, "/ui/api/session?token=" + s.token, "", nil, 400},
		{"a token in the address alone", http.MethodGet, "/ui/api/board?access_token=" + s.token, "", []string{"Authorization: "}, 400},
		{"the token of the page at MCP", http.MethodGet, "/metrics", "", []string{"Origin: http://evil.example.com"}, 403},
		{"a question before the request", http.MethodOptions, "/ui/api/start", "", []string{"Origin: http://127.0.0.1:1"}, 403},
	} {
		status, answer := s.ask(tt.method, tt.path, tt.body, tt.headers...)
		if status != tt.status {
			t.Errorf("%s: %d, want %d: %s", tt.name, status, tt.status, answer)
		}
	}
	var b board.Board
	p.noError(json.Unmarshal(s.get("board"), &b))
	if len(b.Rows) > 0 {
		t.Errorf("threads were started: %+v", b.Rows)
	}
	log, err := os.ReadFile(s.log)
	p.noError(err)
	if bytes.Contains(log, []byte(s.token)) || !bytes.Contains(log, []byte(`"message":"page: refused"`)) {
		t.Errorf("log %s", log)
	}
}
