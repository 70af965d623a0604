package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
)

// place is a project of its own, with a home and a model, for servers that are
// started as processes.
type place struct {
	testing.TB
	dir     string // the project
	program string // rye-mcp
	env     []string
	model   *model
}

// newPlace makes a project of the files in a txtar archive. Its model.yaml is
// what the vendor's API answers.
func newPlace(t testing.TB, archive string) *place {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{TB: t, dir: filepath.Join(root, "project"), program: "rye-mcp"}
	home := filepath.Join(root, "home")
	for _, dir := range []string{home, filepath.Join(p.dir, ".ai")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// Nobody signs the items of these projects; that is what trust_*.txtar is for.
	p.noError(uncheckSignatures(home))
	for _, file := range txtar.Parse([]byte(archive)).Files {
		if file.Name == "model.yaml" {
			p.model = startModel(t, file.Data)
			continue
		}
		p.write(file.Name, file.Data)
	}
	p.env = []string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + home, "USER_SPACE=" + home,
		"RYE_CACHE_DIR=" + filepath.Join(root, "cache"), "GORACE=atexit_sleep_ms=0 " + os.Getenv("GORACE"),
		"GOCOVERDIR=" + os.Getenv("GOCOVERDIR"), "ANTHROPIC_BASE_URL=" + p.model.url, "ANTHROPIC_API_KEY=" + testKey,
	}
	return p
}

func (p *place) write(name string, content []byte) {
	p.Helper()
	path := filepath.Join(p.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		p.Fatal(err)
	}
	if strings.HasPrefix(name, ".ai/config/") {
		trusttest.AcceptSettings(p, resolve.Roots{Project: p.dir, User: filepath.Join(filepath.Dir(p.dir), "home")})
	}
}

func (p *place) noError(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// until looks until done, as poll does.
func (p *place) until(look func() (done bool, otherwise string)) {
	p.Helper()
	poll(p.Fatalf, look)
}

// host is a server process and its client.
type host struct {
	p      *place
	client *mcpclient.Client
	cmd    *exec.Cmd
	log    string // path
}

// serve starts rye-mcp --stdio on the project, with more in its environment.
func (p *place) serve(env ...string) *host {
	p.Helper()
	h, err := p.tryServe(env...)
	p.noError(err)
	return h
}

func (p *place) tryServe(env ...string) (*host, error) {
	logFile, err := os.CreateTemp(filepath.Dir(p.dir), "server-*.log")
	if err != nil {
		return nil, err
	}
	_ = logFile.Close()
	h := &host{p: p, log: logFile.Name()}
	stdio := transport.NewStdioWithOptions(p.program, nil, []string{"--stdio", "--log-file", h.log},
		transport.WithCommandFunc(func(_ context.Context, name string, _ []string, args []string) (*exec.Cmd, error) {
			h.cmd = exec.Command(name, args...)
			h.cmd.Dir, h.cmd.Env = p.dir, slices.Concat(p.env, env)
			return h.cmd, nil
		}))
	h.client = mcpclient.NewClient(stdio)
	ctx, cancel := context.WithTimeout(context.Background(), waitPatience)
	defer cancel()
	if err := h.client.Start(ctx); err != nil {
		return nil, err
	}
	p.Cleanup(h.close)
	return h, sayHello(ctx, h.client)
}

// close ends the server; its threads go on. A second close does nothing.
func (h *host) close() { _ = h.client.Close() }

// refused is a tool's answer that is an error.
type refused struct{ text string }

func (e *refused) Error() string { return e.text }

// args are the arguments of a tool.
type args = map[string]any

// ask calls a tool and decodes its answer. The error is a *refused when the
// tool answered with one, and another when there was no answer.
func ask[T any](h *host, tool string, arguments args) (T, error) {
	var answer T
	ctx, cancel := context.WithTimeout(context.Background(), 3*waitPatience)
	defer cancel()
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, arguments
	result, err := h.client.CallTool(ctx, req)
	if err != nil {
		return answer, fmt.Errorf("%s: %w", tool, err)
	}
	if len(result.Content) != 1 {
		return answer, fmt.Errorf("%s: %d contents, want 1", tool, len(result.Content))
	}
	text, ok := result.Content[0].(mcp.TextContent)
	if !ok {
		return answer, fmt.Errorf("%s: content is a %T", tool, result.Content[0])
	}
	if result.IsError {
		return answer, &refused{text.Text}
	}
	return answer, json.Unmarshal([]byte(text.Text), &answer)
}

// answered is ask for what may not fail; it can be used by any goroutine of a
// test.
func answered[T any](h *host, tool string, arguments args) (answer T, ok bool) {
	h.p.Helper()
	answer, err := ask[T](h, tool, arguments)
	if err != nil {
		h.p.Errorf("%s %v: %v\nthe server's log:\n%s", tool, arguments, err, h.readLog())
	}
	return answer, err == nil
}

// must is answered for what a test cannot go on without.
func must[T any](h *host, tool string, arguments args) T {
	h.p.Helper()
	answer, ok := answered[T](h, tool, arguments)
	if !ok {
		h.p.FailNow()
	}
	return answer
}

func (h *host) readLog() string {
	content, err := os.ReadFile(h.log)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// processesIn lists the processes that work in a folder or below it, or have its name among
// their arguments: servers, threads and their tools. Only Linux tells.
func processesIn(dir string) ([]string, error) {
	if runtime.GOOS != "linux" {
		return nil, nil
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, path := range commands {
		command, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// A process that hides its memory hides its folder from all but root; its arguments name it.
		in, err := os.Readlink(filepath.Join(filepath.Dir(path), "cwd"))
		if err == nil && (in == dir || strings.HasPrefix(in, dir+"/")) || bytes.Contains(command, []byte(dir)) {
			found = append(found, filepath.Base(filepath.Dir(path))+" "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found, nil
}
