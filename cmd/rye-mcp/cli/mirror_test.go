package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestSentBeforeItChanged: a thread noted before a change can be sent before the change. The
// thread is due after it, too.
func TestSentBeforeItChanged(t *testing.T) {
	t.Parallel()
	base := realDir(t)
	dir := makeDir(t, base, "work")
	settings := filepath.Join(makeDir(t, base, ".ai", "config", "agent"), "mirror.yaml")
	if err := os.WriteFile(settings, []byte("mirror: {url: langgraph+http://127.0.0.1:1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sys := testSystem(base, nil)
	p, err := openNamed(t.Context(), sys, options{project: dir})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	defer p.Close() //nolint:errcheck // of a test
	_, err = p.state.Make()
	must(err)
	must(p.mirroring.mirrorRest().Longer(time.Now(), "nobody listens")) // so that nothing sends
	const id = thread.ID("d-1")
	out := p.mirroring.outbox()
	p.mirroring.Changing(id)
	must(out.Take(t.Context(), id))
	_, err = out.Sent(t.Context(), id)
	must(err)
	p.mirroring.Changed(id)
	if due, err := out.List(t.Context()); err != nil || fmt.Sprint(due) != "[d-1]" {
		t.Errorf("due: %v, %v", due, err)
	}
}
