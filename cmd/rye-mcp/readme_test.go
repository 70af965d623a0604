package main_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
)

// readmeFile finds a file that the README shows: its path before a block of four
// backticks.
var readmeFile = regexp.MustCompile("(?ms)^`(\\.ai/[^`]+)`[^\n]*\n````markdown\n(.*?)^````$")

// readmeModel is busy at first, then finds something.
const readmeModel = `-- model.yaml --
turns:
  - times: 1
    error: {status: 429, type: rate_limit_error, message: "too many requests", retry_after: 100ms}
  - tool_calls:
      - name: rye_directive_return
        input: {findings: ["line 1: no error is wrapped"]}
`

// What the README shows about writing directives does what it says.
func TestReadmeDirectives(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorded(t, readmeModel)
	files := readmeFile.FindAllSubmatch(readme, -1)
	if len(files) != 4 {
		t.Fatalf("the README shows %d files", len(files))
	}
	for _, f := range files {
		r.write(string(f[1]), f[2])
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

// readmeTool finds the tool that the README shows: its path before a block of Python.
var readmeTool = regexp.MustCompile("(?ms)`(\\.ai/tools/[^`]+\\.py)`[^\n]*\n```python\n(.*?)^```$")

// The tool that the README shows has six lines, and runs.
func TestReadmeTool(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed here; install it to run this test")
	}
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := readmeTool.FindSubmatch(readme)
	if shown == nil || strings.Count(string(shown[2]), "\n") != 6 {
		t.Fatalf("the README shows %q", shown)
	}
	r := newRecorded(t, readmeModel)
	r.write(string(shown[1]), shown[2])
	got := must[map[string]any](r.host, "rye_execute", args{"item_id": "count", "item_type": "tool", "parameters": args{"text": "to be or not"}})
	if data, _ := got["data"].(map[string]any); data["words"] != 4.0 {
		t.Errorf("got %v", got)
	}
}

// readmeBlock is the block of the README that follows the first naming of a file.
func readmeBlock(t *testing.T, file string) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "`"+file+"`")
	_, rest, opened := strings.Cut(rest, "\n```")
	block, _, closed := strings.Cut(rest, "\n```")
	if !found || !opened || !closed {
		t.Fatalf("the README shows no %s", file)
	}
	_, block, _ = strings.Cut(block, "\n")
	return block + "\n"
}

// The request over HTTP that the README shows is made, with its key.
func TestReadmeHTTP(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"asked":%q,"with":%q}`, r.RequestURI, r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	p := newPlace(t, readmeModel)
	p.write(".ai/tools/weather.yaml", []byte(strings.ReplaceAll(readmeBlock(t, ".ai/tools/weather.yaml"), "https://api.example.com", s.URL)))
	h := p.serve("WEATHER_KEY=s3cret")
	got := must[map[string]any](h, "rye_execute", args{"item_id": "weather", "item_type": "tool", "parameters": args{"city": "São Paulo/.."}})
	data, _ := got["data"].(map[string]any)
	if body, _ := data["body"].(map[string]any); body["asked"] != "/v1/weather/S%C3%A3o%20Paulo%2F.." || body["with"] != "Bearer s3cret" {
		t.Errorf("got %v", got)
	}
}

// The tool that the README shows as confined uses a key that it does not have.
func TestReadmeConfined(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed here; install it to run this test")
	}
	if confined, err := scriptCondition("confined"); err != nil || !confined {
		t.Skipf("this system confines no commands (%v)", err)
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"asked":%q,"with":%q}`, r.RequestURI, r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	p := newPlace(t, readmeModel)
	p.write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	shown := strings.NewReplacer("https://api.github.com", s.URL, "http://api.github.com", "http://127.0.0.1").Replace(readmeBlock(t, ".ai/tools/issue.py"))
	p.write(".ai/tools/issue.py", []byte(shown))
	h := p.serve("GITHUB_TOKEN=s3cret", "SSL_CERT_FILE="+filepath.Join(p.dir, "ca.pem"))
	got := must[map[string]any](h, "rye_execute", args{"item_id": "issue", "item_type": "tool", "parameters": args{"path": "a/b/issues/1"}})
	if data, _ := got["data"].(map[string]any); data["asked"] != "/repos/a/b/issues/1" || data["with"] != "Bearer s3cret" {
		t.Errorf("got %v", got)
	}
}
