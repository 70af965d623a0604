package main_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/confine/confinetest"
)

// shownFile is a file that a guide shows.
func shownFile(t *testing.T, topic, path string) []byte {
	t.Helper()
	for _, b := range codeBlocks(guides(t)[topic]) {
		if b.about == path {
			return []byte(b.content)
		}
	}
	t.Fatalf("%s shows no %s", topic, path)
	return nil
}

// composingModel is busy at first, then finds something.
const composingModel = `-- model.yaml --
turns:
  - times: 1
    error: {status: 429, type: rate_limit_error, message: "too many requests", retry_after: 100ms}
  - tool_calls:
      - name: rye_directive_return
        input: {findings: ["line 1: no error is wrapped"]}
`

// The files of the guide to directives that build on each other do what it says.
func TestGuideComposing(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, composingModel)
	for _, path := range []string{".ai/knowledge/team/conventions.md", ".ai/knowledge/team/go.md", ".ai/directives/team/base.md", ".ai/directives/team/review.md"} {
		r.write(path, shownFile(t, "composing", path))
	}
	r.write("main.go", []byte("package main\n"))
	asked := r.run("team/review", args{"parameters": args{"path": "main.go"}})
	if len(asked) != 2 {
		t.Fatalf("%d requests; the hook asks a busy provider again", len(asked))
	}
	request := string(asked[0].Body)
	for _, part := range []string{"You work as a thread", "Errors are wrapped with %w", "goroutines that nobody ends", "Review `main.go`", "rye_file_system_read"} {
		if !strings.Contains(request, part) {
			t.Errorf("the first request has no %q", part)
		}
	}
	if strings.Contains(request, "rye_file_system_write") {
		t.Error("base_review lets a thread write")
	}
	threads := must[view.List](r.host, "list_threads", args{}).Threads
	record, err := os.ReadFile(filepath.Join(r.dir, ".ai", "state", "threads", filepath.FromSlash(string(threads[0].ThreadID)), "transcript.jsonl"))
	r.noError(err)
	for _, id := range []string{"patience", "go_hints"} {
		if !strings.Contains(string(record), `"hook_id":"`+id+`"`) {
			t.Errorf("the hook %s has not fired", id)
		}
	}
}

// The request over HTTP that the guide to tools shows is made, with its key.
func TestGuideHTTPTool(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"asked":%q,"with":%q}`, r.RequestURI, r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	p := newPlace(t, composingModel)
	p.write(".ai/tools/weather.yaml", []byte(strings.ReplaceAll(string(shownFile(t, "tools", ".ai/tools/weather.yaml")), "https://api.example.com", s.URL)))
	h := p.serve("WEATHER_KEY=s3cret")
	got := must[map[string]any](h, "rye_execute", args{"item_id": "weather", "item_type": "tool", "parameters": args{"city": "São Paulo/.."}})
	data, _ := got["data"].(map[string]any)
	if body, _ := data["body"].(map[string]any); body["asked"] != "/v1/weather/S%C3%A3o%20Paulo%2F.." || body["with"] != "Bearer s3cret" {
		t.Errorf("got %v", got)
	}
}

// The tool that the guide shows as confined uses a key that it does not have.
func TestGuideConfinedTool(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed here; install it to run this test")
	}
	if confined, err := scriptCondition("confined"); err != nil || !confined {
		confinetest.Skip(t, fmt.Sprint(err))
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"asked":%q,"with":%q}`, r.RequestURI, r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	p := newPlace(t, composingModel)
	p.write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	shown := strings.NewReplacer("https://api.github.com", s.URL, "http://api.github.com", "http://127.0.0.1").Replace(string(shownFile(t, "tools", ".ai/tools/issue.py")))
	p.write(".ai/tools/issue.py", []byte(shown))
	h := p.serve("GITHUB_TOKEN=s3cret", "SSL_CERT_FILE="+filepath.Join(p.dir, "ca.pem"))
	got := must[map[string]any](h, "rye_execute", args{"item_id": "issue", "item_type": "tool", "parameters": args{"path": "a/b/issues/1"}})
	if data, _ := got["data"].(map[string]any); data["asked"] != "/repos/a/b/issues/1" || data["with"] != "Bearer s3cret" {
		t.Errorf("got %v", got)
	}
}
