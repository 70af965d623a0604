package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestReport(t *testing.T) {
	t.Parallel()
	notFound := tool.Faultf(tool.CodeNotFound, "no such thing").With("nearest_ids", []string{"a", "b"}).WithHint("look")
	wrongInput := tool.Faultf(tool.CodeInvalidInputs, "bad").WithHint("call again").
		With("declared_inputs", []inputs.Declared{{Name: "to", Type: "integer"}, {Name: "by", Type: "string"}})
	tests := []struct {
		name string
		err  error
		code int
		text string
	}{
		{"said already", exitError{code: 130}, 130, ""},
		{"usage", fmt.Errorf("x: %w", &usageError{message: "no", try: "yes"}), 2, "Error: no\nTry:   yes\n"},
		{"signal", fmt.Errorf("wait: %w", &thread.SignalError{Signal: "SIGINT"}), 130, "Error: interrupted\n"},
		{"cancelled", context.Canceled, 130, "Error: interrupted\n"},
		{"nearest", notFound, 1, "Error: no such thing\nTry:   did you mean a, b?\n"},
		{"inputs", wrongInput, 1, "Error: bad\nTry:   --input to=INTEGER --input by=STRING\n"},
		{"hint", tool.Faultf(tool.CodeNoKey, "no key").WithHint("make one"), 1, "Error: no key\nTry:   make one\n"},
		{"for people", tool.Faultf(tool.CodeNoKey, "no key").WithHint("tell the person").WithTry("make one"), 1, "Error: no key\nTry:   make one\n"},
		{"other", errors.New("disk full"), 1, "Error: disk full\nTry:   x --help\n"},
		{"hostile", errors.New("disk \x1b[31mfull"), 1, "Error: disk ␛[31mfull\nTry:   x --help\n"},
		{"joined", errors.Join(errors.New("disk full"), nil), 1, "Error: disk full\nTry:   x --help\n"},
	}
	for _, tt := range tests {
		var w bytes.Buffer
		if code := report(System{Stderr: &w, Getenv: os.Getenv}, tt.err, "x --help"); code != tt.code || w.String() != tt.text {
			t.Errorf("%s: code %d, %q; want %d, %q", tt.name, code, w.String(), tt.code, tt.text)
		}
	}
}

// TestEveryErrorHasAdvice holds what the guides promise: the next thing to try is told,
// whatever is wrong with a command line.
func TestEveryErrorHasAdvice(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"xyzzy", "--nosuch", "store xyzzy", "threads xyzzy", "memory xyzzy", "items xyzzy", "keys xyzzy", "mcp xyzzy", "config xyzzy", "hooks xyzzy", "langgraph xyzzy",
		"run nosuch", "run nosuch --limit foo=1", "run nosuch --input x", "threads list --older-than 3x", "threads list --status foo", "threads list --limit 0",
		"threads cost --since foo", "threads cost --by foo", "threads map nosuch --items /nonexist", "threads handoff x --summary /nonexist", "threads approve x --raise foo=3",
		"threads watch --since 3x", "threads wait x --timeout 1", "threads verify --receipt /nonexist", "threads receipt x", "threads export x", "threads import /nonexist",
		"threads cleanup --older-than 3x", "memory import /nonexist", "memory edit KEY --kind foo", "memory export /nonexist/x", "models --provider nosuch", "models a b",
		"keys trust nosuch", "config set agent threads.max_running abc", "config set nosuch a b", "mcp discover nosuch", "items copy nosuch --to foo", "items show nosuch",
		"replay nosuch", "test --junit /nonexist/x.xml", "sign nosuch", "validate nosuch", "help nosuch", "trust /nonexist",
	} {
		dir := realDir(t)
		var said bytes.Buffer
		sys := testSystem(dir, map[string]string{"USER_SPACE": dir})
		sys.Stdin, sys.Stdout, sys.Stderr = strings.NewReader(""), io.Discard, &said
		if code := Main(sys, append([]string{"--project", dir}, strings.Fields(line)...)); code == exitOK {
			t.Errorf("%s: succeeds", line)
		}
		if text := said.String(); !strings.Contains(text, "Error: ") || !strings.Contains(text, "\nTry:   ") {
			t.Errorf("%s: %q", line, text)
		}
	}
}

func TestPairs(t *testing.T) {
	t.Parallel()
	got, err := pairs("--input", []string{"a=1", "b=", "c=x=y"})
	if want := map[string]string{"a": "1", "b": "", "c": "x=y"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range [][]string{{"a"}, {"=1"}, {""}, {"a=1", "a=1"}} {
		var usage *usageError
		if got, err := pairs("--input", bad); !errors.As(err, &usage) || !strings.Contains(usage.message, "--input") {
			t.Errorf("%v = %v, %v", bad, got, err)
		}
	}
}

func TestSignalName(t *testing.T) {
	t.Parallel()
	for signal, want := range map[syscall.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"} {
		if got := signalName(signal); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
