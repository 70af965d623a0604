package browser_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rye-mcp/rye-mcp/runtime/llm/scripted"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// patience bounds every wait; a test that needs it has failed.
const patience = time.Minute

// place is a project, the user's space beside it, and a model.
type place struct {
	testing.TB
	dir, home string
	env       []string
	model     *model
}

// newPlace makes a place of the files of an archive, in which ”' are three backquotes;
// model.yaml is what the model says. Its items need no signatures.
func newPlace(t testing.TB, archive string) *place {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{TB: t, dir: filepath.Join(root, "project"), home: filepath.Join(root, "home")}
	p.write(filepath.Join(p.dir, ".ai", "knowledge", "about.md"), "Made by a test.\n")
	p.write(filepath.Join(p.home, ".ai", "config", "agent", "agent.yaml"), "integrity: {mode: off}\n")
	for _, file := range txtar.Parse([]byte(strings.ReplaceAll(archive, "'''", "```"))).Files {
		switch at, inHome := strings.CutPrefix(file.Name, "home/"); {
		case file.Name == "model.yaml":
			p.model = startModel(t, file.Data)
		case inHome:
			p.write(filepath.Join(p.home, at), string(file.Data))
		default:
			p.write(filepath.Join(p.dir, at), string(file.Data))
		}
	}
	p.env = []string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + p.home, "USER_SPACE=" + p.home,
		"RYE_CACHE_DIR=" + filepath.Join(root, "cache"), "GORACE=atexit_sleep_ms=0 " + os.Getenv("GORACE"), "GOCOVERDIR=" + os.Getenv("GOCOVERDIR"),
	}
	if p.model != nil {
		p.env = append(p.env, "ANTHROPIC_BASE_URL="+p.model.url, "ANTHROPIC_API_KEY=test-key-that-must-not-leak")
	}
	return p
}

func (p *place) write(path, content string) {
	p.Helper()
	p.noError(os.MkdirAll(filepath.Dir(path), 0o700))
	p.noError(os.WriteFile(path, []byte(content), 0o600))
}

func (p *place) noError(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// rye runs a command in the project and returns what it printed.
func (p *place) rye(args ...string) string {
	p.Helper()
	cmd := p.command(args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		p.Fatalf("rye-mcp %s: %v\n%s%s", strings.Join(args, " "), err, out, &said)
	}
	return string(out)
}

func (p *place) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(p.Context()), "rye-mcp", args...) // cleanups use it too
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// shown is what a test reads of a thread: what another process finds in the store.
type shown struct {
	ThreadID  thread.ID    `json:"thread_id"`
	Resolved  thread.ID    `json:"resolved_thread_id"`
	Directive string       `json:"directive"`
	Name      string       `json:"name"`
	Status    thread.State `json:"status"`
	Result    string       `json:"result"`
	Error     string       `json:"error"`
	Model     string       `json:"model"`
	Limits    map[string]float64
	Inputs    map[string]any
	Waiting   []any
	Retry     *thread.Retry
}

// list are the threads of the project, newest first.
func (p *place) list() []shown {
	p.Helper()
	var all struct{ Threads []shown }
	p.noError(json.Unmarshal([]byte(p.rye("threads", "list", "--json")), &all))
	return all.Threads
}

func (p *place) show(id thread.ID) shown {
	p.Helper()
	var s shown
	p.noError(json.Unmarshal([]byte(p.rye("threads", "show", string(id), "--json")), &s))
	return s
}

// until looks at the store, which tells a test nothing, until done.
func (p *place) until(look func() (done bool, otherwise string)) {
	p.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		done, otherwise := look()
		if done {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			p.Fatal(otherwise)
		}
	}
}

// untilIs waits until a thread has come to a state.
func (p *place) untilIs(id thread.ID, want thread.State) shown {
	p.Helper()
	if want.Terminal() {
		p.untilEnded(id)
	}
	var s shown
	p.until(func() (bool, string) {
		s = p.show(id)
		return s.Status == want, fmt.Sprintf("thread %s is %s, want %s: %s", id, s.Status, want, s.Error)
	})
	return s
}

// untilEnded waits until a thread does no more.
func (p *place) untilEnded(id thread.ID) shown {
	p.Helper()
	wait := p.command("threads", "wait", string(id), "--timeout", patience.String())
	said, _ := wait.CombinedOutput() // it fails when the thread has
	s := p.show(id)
	if !s.Status.Terminal() {
		p.Fatalf("thread %s is %s: %s\n%s", id, s.Status, said, p.rye("threads", "tail", string(id)))
	}
	return s
}

// untilAsks waits until a thread asks.
func (p *place) untilAsks(id thread.ID) {
	p.Helper()
	p.until(func() (bool, string) {
		s := p.show(id)
		return len(s.Waiting) > 0, fmt.Sprintf("thread %s is %s and does not ask: %s", id, s.Status, s.Error)
	})
}

// held is what a prompt contains whose answer the model holds back until it is released.
const held = "Be held."

// model is a scripted model that can hold its answers back.
type model struct {
	url      string
	release  func() // answers what is held back, and holds nothing back any more
	released chan struct{}
}

func startModel(t testing.TB, source []byte) *model {
	t.Helper()
	script, err := scripted.Parse("model.yaml", source)
	if err != nil {
		t.Fatal(err)
	}
	server, err := scripted.Serve(context.Background(), script, scripted.Options{})
	if err != nil {
		t.Fatal(err)
	}
	behind, err := url.Parse(server.BaseURL())
	if err != nil {
		t.Fatal(err)
	}
	m := &model{released: make(chan struct{})}
	m.release = sync.OnceFunc(func() { close(m.released) })
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(behind) },
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) {}, // a killed client is no news
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(held)) {
			select {
			case <-m.released:
			case <-r.Context().Done():
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	m.url = front.URL
	t.Cleanup(func() {
		m.release()
		_ = server.Close() // breaks off what hangs, so that front can close
		front.CloseClientConnections()
		front.Close()
	})
	return m
}
