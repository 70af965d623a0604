package shell

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// masking hides one word, in what is written to it as a whole.
type masking struct {
	bytes.Buffer
	to io.Writer
}

func (m *masking) Close() error {
	_, err := io.WriteString(m.to, strings.ReplaceAll(m.String(), "the-word", "****"))
	return err
}

// oneWord is the masker over it.
type oneWord struct{}

func (oneWord) Mask(text string) string           { return strings.ReplaceAll(text, "the-word", "****") }
func (m oneWord) MaskLines(text string) string    { return m.Mask(text) }
func (oneWord) Writer(w io.Writer) io.WriteCloser { return &masking{to: w} }

func secretive(t *testing.T) tool.Env {
	t.Helper()
	env := project(t)
	env.Mask = oneWord{}
	return env
}

// A command that may hold a secret runs as any other, and is not to be read in
// the arguments of a process.
func TestSecretCommand(t *testing.T) {
	t.Parallel()
	env := secretive(t)
	tests := []struct {
		command string
		want    output
	}{
		{"echo the-word; echo the-word >&2; exit 3", output{ExitCode: 3, Stdout: "****\n", Stderr: "****\n"}},
		{"cat; echo end", output{Stdout: "end\n"}}, // its input is empty
		{"x='a\n\tb'\nprintf '%s|%s' \"$x\" \"$#\"", output{Stdout: "a\n\tb|0"}},
		{"cat <<END\nthe $((1+1))\nEND", output{Stdout: "the 2\n"}},
		{"trap 'echo bye' EXIT; true", output{Stdout: "bye\n"}},
		{"kill -9 $$", output{ExitCode: -1, Signal: "SIGKILL"}},
	}
	if runtime.GOOS == "linux" {
		tests = append(tests, struct {
			command string
			want    output
		}{"tr '\\0' ' ' </proc/$$/cmdline | grep -c the-word", output{ExitCode: 1, Stdout: "0\n"}})
	}
	for _, tt := range tests {
		got := bash(t, env, tt.command)
		got.DurationMS = 0
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.command, got, tt.want)
		}
	}
}

// A result is masked before it is cut.
func TestSecretIsNotCut(t *testing.T) {
	t.Parallel()
	env := secretive(t)
	for shift := range len("the-word") {
		got := bash(t, env, fmt.Sprintf("printf %%%ds ''; yes the-word | head -n 4000 | tr -d '\\n'", shift))
		if !got.Truncated || strings.Contains(got.Stdout, "the") || strings.Contains(got.Stdout, "word") {
			t.Fatalf("shifted by %d: %.80q", shift, got.Stdout)
		}
	}
}

func TestSecretTimeout(t *testing.T) {
	t.Parallel()
	_, fault := call(t.Context(), t, secretive(t), map[string]any{"command": "echo the-word; sleep 60", "timeout": 0.3})
	if fault == nil || fault.Code != tool.CodeTimeout || fault.Details["stdout"] != "****\n" {
		t.Errorf("got %v", fault)
	}
}
