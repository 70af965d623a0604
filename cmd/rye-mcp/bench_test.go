package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const benchDirective = "```xml\n" + `<directive name="bench" version="1.0.0">
  <metadata><description>Ask once.</description><limits turns="1" spend="0.10" /><permissions /></metadata>
</directive>` + "\n```\n\nSay something.\n"

// BenchmarkRunToFirstCall measures from the start of "rye-mcp run" until the
// model is called by the thread it starts: two processes start, the store is
// opened twice, and a thread is registered, budgeted and signed for with FULL
// durability. The metric x-version is the ratio to one start of the same binary
// with "version", measured in the same run.
func BenchmarkRunToFirstCall(b *testing.B) {
	called := make(chan time.Time, 1)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case called <- time.Now():
		default:
		}
		http.Error(w, `{"type":"error","error":{"type":"authentication_error","message":"bench"}}`, http.StatusUnauthorized)
	}))
	defer model.Close()
	dir := b.TempDir()
	directives := filepath.Join(dir, ".ai", "directives")
	if err := os.MkdirAll(directives, 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directives, "bench.md"), []byte(benchDirective), 0o600); err != nil {
		b.Fatal(err)
	}
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command("rye-mcp", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "USER_SPACE="+dir, "ANTHROPIC_BASE_URL="+model.URL, "ANTHROPIC_API_KEY=bench")
		return cmd
	}
	var toCall, toVersion time.Duration
	for b.Loop() {
		began := time.Now()
		if err := run("version").Run(); err != nil {
			b.Fatal(err)
		}
		toVersion += time.Since(began)

		began = time.Now()
		thread := run("run", "bench")
		if err := thread.Start(); err != nil {
			b.Fatal(err)
		}
		toCall += (<-called).Sub(began)
		_ = thread.Wait() // the thread fails, as the model does
	}
	b.ReportMetric(float64(toCall.Milliseconds())/float64(b.N), "ms/first-call")
	b.ReportMetric(float64(toCall)/float64(toVersion), "x-version")
}
