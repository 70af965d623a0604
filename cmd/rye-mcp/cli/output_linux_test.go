package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestLostOutput: where standard output takes nothing, each command fails and says that of
// standard output. The disk of the project has nothing to do with it.
func TestLostOutput(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = full.Close() })
	for _, line := range []string{
		"threads list", "threads list --json", "threads cost", "threads health", "threads --help", "--help", "help", "help settings",
		"version", "completion bash", "config show", "doctor --json", "items list", "keys generate", "keys list", "trust --diff", "install",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			dir := realDir(t)
			var said bytes.Buffer
			sys := testSystem(dir, map[string]string{"USER_SPACE": dir})
			sys.Stdin, sys.Stdout, sys.Stderr = strings.NewReader(""), full, &said
			code := Main(sys, append([]string{"--project", dir}, strings.Fields(line)...))
			want := "Error: standard output cannot be written: no space left on device\nTry:   " + tryOutput + "\n"
			if code != exitFailure || !strings.HasSuffix(said.String(), want) || strings.Contains(said.String(), "the disk of the project") {
				t.Errorf("code %d, %q; want %d and %q", code, said.String(), exitFailure, want)
			}
		})
	}
}
