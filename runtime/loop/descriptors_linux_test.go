package loop

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// fewFilesVariable tells the test binary that it may use up its descriptors.
const fewFilesVariable = "LOOP_TEST_FEW_FILES"

// TestNoDescriptors uses up the file descriptors of a process: everything that
// needs one says so, nothing is lost or leaked, and it all works again when
// there are some.
func TestNoDescriptors(t *testing.T) {
	t.Parallel()
	if os.Getenv(fewFilesVariable) != "" {
		testWithoutDescriptors(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestNoDescriptors$")
	cmd.Env = append(os.Environ(), fewFilesVariable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// exhaust opens files until there are no descriptors left, and returns what
// closes them.
func exhaust() (release func(), err error) {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 200, Max: 200}); err != nil {
		return nil, err
	}
	var files []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if errors.Is(err, syscall.EMFILE) {
			break
		}
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return func() {
		for _, f := range files {
			_ = f.Close()
		}
	}, nil
}

// openFiles is how many descriptors this process has.
func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func testWithoutDescriptors(t *testing.T) {
	h := newHouse(t)
	h.script(doneScript)
	id := h.register(job{capabilities: []string{}})
	registry := provider.NewSource(func(string) string { return "" }).With(config.New(h.roots()).Read())
	choice, err := registry.Choose(t.Context(), provider.Want{Override: "fake/small"})
	if err != nil {
		t.Fatal(err)
	}
	client, closeClient, err := registry.Open(t.Context(), choice)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeClient() }()
	attempts := map[string]func() error{
		"open a transcript": func() error {
			w, err := h.finisher.OpenTranscript(id, "")
			if err == nil {
				err = w.Close()
			}
			return err
		},
		"run a command": func() error {
			_, err := process.Run(t.Context(), process.Command{Path: "true"})
			return err
		},
		"call a model": func() error {
			_, err := client.Stream(t.Context(), llm.Request{
				Model: "small", Messages: []llm.Message{llm.Text(llm.User, "hi")}, MaxTokens: 9,
			}, nil)
			return err
		},
	}
	before := openFiles(t)
	release, err := exhaust()
	if err != nil {
		t.Fatal(err)
	}
	for what, attempt := range attempts {
		if err := attempt(); err == nil || !strings.Contains(err.Error(), "too many open files") {
			t.Errorf("%s: %v", what, err)
		}
	}
	release()
	if after := openFiles(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	for what, attempt := range attempts {
		if err := attempt(); err != nil {
			t.Errorf("%s, with descriptors again: %v", what, err)
		}
	}
	if rec := h.end(t.Context(), id); rec.Status != thread.Completed {
		t.Errorf("with descriptors again: %s %+v", rec.Status, rec.Outcome)
	}
}
