package recovery

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/records"
)

func TestLastWords(t *testing.T) {
	t.Parallel()
	stack := strings.Repeat("goroutine 1 [running]:\n\tmain.main()\n", 100)
	for name, tt := range map[string]struct{ log, want string }{
		"nothing":          {"", ""},
		"only its log":     {`{"level":"info","message":"thread ended"}` + "\n", ""},
		"panic":            {"{}\npanic: boom\n\tpanic: again\n\n" + stack, "panic: boom"},
		"fatal":            {"fatal error: all goroutines are asleep\n" + stack, "fatal error: all goroutines are asleep"},
		"reported":         {"Error: first\nTry:   this\nError: no provider\nTry:   that\n", "no provider"},
		"panic and report": {"Error: before\npanic: boom\n", "panic: boom"},
		"far back":         {"panic: lost\n" + strings.Repeat("x", maxLogTail) + "\nError: near\n", "near"},
		"no text":          {"Error: \xff\xfe\n", "\uFFFD"},
		"no last newline":  {"Error: cut off", "cut off"},
	} {
		path := filepath.Join(t.TempDir(), "thread.log")
		if err := os.WriteFile(path, []byte(tt.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lastWords(records.File(path)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if got := lastWords(records.File(filepath.Join(t.TempDir(), "missing"))); got != "" {
		t.Errorf("a missing log says %q", got)
	}
}

// FuzzLastWords: a log can hold anything, and what is taken from it goes into a
// row and to a model.
func FuzzLastWords(f *testing.F) {
	f.Add([]byte("panic: x\n"))
	f.Add([]byte("Error: " + strings.Repeat("ü", 1000)))
	f.Add([]byte("\n\n\xffError: \x00"))
	f.Fuzz(func(t *testing.T, log []byte) {
		if got := lastWordsIn(string(log)); !utf8.ValidString(got) || strings.ContainsRune(got, '\n') || len(got) > 2000 {
			t.Errorf("last words %q", got)
		}
	})
}
