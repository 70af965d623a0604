package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
		{"other", errors.New("disk full"), 1, "Error: disk full\n"},
		{"hostile", errors.New("disk \x1b[31mfull"), 1, "Error: disk ␛[31mfull\n"},
		{"joined", errors.Join(errors.New("disk full"), nil), 1, "Error: disk full\n"},
	}
	for _, tt := range tests {
		var w bytes.Buffer
		if code := report(System{Stderr: &w, Getenv: os.Getenv}, tt.err); code != tt.code || w.String() != tt.text {
			t.Errorf("%s: code %d, %q; want %d, %q", tt.name, code, w.String(), tt.code, tt.text)
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
