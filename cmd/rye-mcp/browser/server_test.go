package browser_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// server is a process that serves the page.
type server struct {
	p      *place
	cmd    *exec.Cmd
	origin string // such as http://127.0.0.1:40123
	token  string // of the page, which cannot be used up
	log    string // path
	ended  chan struct{}
}

// pageAddress is how a server says where its page is. No server and no log sees the
// fragment.
var pageAddress = regexp.MustCompile(`(http://[^/\s]+)/\S*#token=([^\s"&]+)`)

// serve starts a server on a free port.
func (p *place) serve(flags ...string) *server {
	p.Helper()
	return p.serveAt("127.0.0.1:0", flags...)
}

func (p *place) serveAt(address string, flags ...string) *server {
	p.Helper()
	log, err := os.CreateTemp(filepath.Dir(p.dir), "server-*.log")
	p.noError(err)
	s := &server{p: p, log: log.Name(), ended: make(chan struct{})}
	s.cmd = p.command(append([]string{"serve", "--http", address, "--log-file", s.log}, flags...)...)
	s.cmd.Stderr = log
	out, err := s.cmd.StdoutPipe()
	p.noError(err)
	p.noError(s.cmd.Start())
	p.noError(log.Close())
	lines := bufio.NewScanner(out)
	for s.token == "" && lines.Scan() {
		if m := pageAddress.FindStringSubmatch(lines.Text()); m != nil {
			s.origin, s.token = m[1], m[2]
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = s.cmd.Wait() // it is killed, or ended by a signal
		close(s.ended)
	}()
	p.Cleanup(s.close)
	if s.token == "" {
		s.kill()
		p.Fatalf("the server names no page; its log:\n%s", s.readLog())
	}
	return s
}

// kill ends the process at once. A second one does nothing.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// close ends the server and the threads that go on without it.
func (s *server) close() {
	s.kill()
	for _, t := range s.p.list() {
		if !t.Status.Terminal() {
			s.p.rye("threads", "kill", string(t.ThreadID))
		}
	}
	if s.p.Failed() {
		s.p.Logf("the server's log:\n%s", s.readLog())
	}
}

func (s *server) readLog() string {
	content, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// address is what a person opens.
func (s *server) address() string { return s.origin + "/#token=" + s.token }

// ask sends a request to the page's API as the page does.
func (s *server) ask(method, path, token string, body any, headers ...string) (status int, answer []byte) {
	s.p.Helper()
	var sent io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		s.p.noError(err)
		sent = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(s.p.Context(), method, s.origin+path, sent)
	s.p.noError(err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	s.p.noError(err)
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	s.p.noError(err)
	return resp.StatusCode, answer
}

// start starts a thread of a directive and returns its id.
func (s *server) start(directive string, inputs map[string]any) thread.ID {
	s.p.Helper()
	if inputs == nil {
		inputs = map[string]any{}
	}
	status, answer := s.ask(http.MethodPost, "/ui/api/start", s.token, map[string]any{"directive": directive, "inputs": inputs})
	var started struct {
		ThreadID thread.ID `json:"thread_id"`
	}
	if err := json.Unmarshal(answer, &started); err != nil || status != http.StatusOK || started.ThreadID == "" {
		s.p.Fatalf("start %s: %d %v: %s", directive, status, err, answer)
	}
	return started.ThreadID
}

// startAll starts threads at once.
func (s *server) startAll(directive string, n int) []thread.ID {
	s.p.Helper()
	ids := make([]thread.ID, n)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() { ids[i] = s.start(directive, map[string]any{"n": fmt.Sprint(i)}) })
	}
	all.Wait()
	return ids
}

// hears follows the board as a page does until a line of it contains a text.
func (s *server) hears(text string) error {
	req, err := http.NewRequestWithContext(s.p.Context(), http.MethodGet, s.origin+"/ui/api/board?stream=1", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if bytes.Contains(lines.Bytes(), []byte(text)) {
			return nil
		}
	}
	return fmt.Errorf("the stream has ended with %s, and never said %q: %w", resp.Status, text, lines.Err())
}

func unmarshal(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%w: %.300s", err, raw)
	}
	return nil
}
