package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/rag/embed/embedtest"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	memtools "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

// noted is a thread that was cancelled, after it noted something.
func (p *project) noted(t *testing.T, id thread.ID) {
	t.Helper()
	rec, _, err := p.store.Register(t.Context(), store.NewThread{ID: id, Run: thread.NewRun(), Kind: thread.KindDirective, Directive: "work", Now: p.state.finder.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.control.Stop.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	book, unread, err := p.entriesOffOrOn()
	if err != nil || unread != nil {
		t.Fatal(err, unread)
	}
	if _, err := book.Write(t.Context(), writerOf(rec), memtools.New{Kind: memtools.Discovery, Title: "Of " + string(id), Text: fmt.Sprintf("thread %s has found something", id)}); err != nil {
		t.Fatal(err)
	}
}

// TestDeleteWithBrokenMemorySettings: a mistake in memory.yaml keeps no thread from being
// deleted. Its entries go, and what to mend is told.
func TestDeleteWithBrokenMemorySettings(t *testing.T) {
	t.Parallel()
	p := byWordsAlone(remembering(t, "enabled: true\n"))
	p.noted(t, "work-1")
	settings := filepath.Join(p.resolver.Roots().User, ".ai", "config", "agent", "memory.yaml")
	if err := os.WriteFile(settings, []byte("enabled: perhaps\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	told, err := p.control.Tidy.Delete(t.Context(), tidy.DeleteRequest{ThreadID: "work-1", Agreed: true})
	if err != nil || told.Threads != 1 || len(told.Kept) != 1 || !strings.Contains(told.Kept[0], "memory.yaml") || !strings.Contains(told.Kept[0], "mend that") {
		t.Fatalf("%+v %v", told, err)
	}
	if with := strings.Join(told.With, "; "); !strings.Contains(with, "1 entry of memory") || !strings.Contains(with, "could not be looked at") {
		t.Errorf("with %q", with)
	}
	if _, err := p.control.Health.Report(t.Context(), health.Request{}, nil); err != nil {
		t.Errorf("health: %v", err)
	}
	if _, err := p.compactMemory(t.Context()); err != nil {
		t.Errorf("vacuum: %v", err)
	}
	if err := os.WriteFile(settings, []byte("enabled: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.gives(t, memtools.ListID, map[string]any{}); !strings.Contains(got, `"count":0`) {
		t.Error(got)
	}
	if done, err := p.control.Tidy.Continue(t.Context(), nil); err != nil || done.Removed != 1 || done.Left != 0 {
		t.Errorf("goes on: %+v %v", done, err)
	}
}

// TestCleanupTellsEntries: the dry run of a cleanup says how many entries go.
func TestCleanupTellsEntries(t *testing.T) {
	t.Parallel()
	p := byWordsAlone(remembering(t, "enabled: true\n"))
	p.noted(t, "work-1")
	p.noted(t, "work-2")
	shown, err := p.control.Tidy.Cleanup(t.Context(), tidy.CleanupRequest{OlderThan: "0s", DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	sys := testSystem(t.TempDir(), nil)
	sys.Stdout = &said
	if err := tellFound(sys, shown); err != nil || !strings.Contains(said.String(), "2 threads") || !strings.Contains(said.String(), "with 2 entries of memory") {
		t.Errorf("%q %v", said.String(), err)
	}
}

// TestNothingIsAskedOfNothing: a question of a namespace without texts costs nothing.
func TestNothingIsAskedOfNothing(t *testing.T) {
	t.Parallel()
	server := embedtest.New(t)
	p := remembering(t, "enabled: true\nembedding: {base_url: '"+server.URL+"', model: test-embed}\n")
	ask := func() string {
		p.gives(t, memtools.RecallID, map[string]any{"query": "anything"})
		p.gives(t, "rye/rag/query", map[string]any{"namespace": "empty", "query": "anything", "project": "*"})
		return p.gives(t, "rye/rag/query", map[string]any{"namespace": "empty", "query": "anything"})
	}
	ask()
	p.gives(t, "rye/rag/store", map[string]any{"namespace": "other", "key": "k", "text": "something"})
	before := server.Calls()
	if got := ask(); !strings.Contains(got, "no texts") || server.Calls() != before {
		t.Errorf("%d requests, %s", server.Calls()-before, got)
	}
	if before != 1 {
		t.Errorf("%d requests for one text", before)
	}
	p.gives(t, "rye/rag/query", map[string]any{"namespace": "other", "query": "anything"})
	if server.Calls() != before+1 {
		t.Error("where there is something it is looked for by meaning")
	}
}

// TestDefaultMemoryStore holds the constant to the shipped settings.
func TestDefaultMemoryStore(t *testing.T) {
	t.Parallel()
	if set, err := remembering(t, "").memorySettings(); err != nil || set.Store != config.DefaultMemoryStore {
		t.Errorf("%q %v", set.Store, err)
	}
}

// TestKindGiven: an entry without a kind is refused with those there are.
func TestKindGiven(t *testing.T) {
	t.Parallel()
	for kind, want := range map[memtools.Kind]string{"": "--kind is needed: one of decision, ", "fact": `no kind "fact"; valid are decision, `} {
		err := kindGiven(kind)
		var u *usageError
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &u) || !strings.Contains(u.try, "--kind decision") {
			t.Errorf("%q: %v", kind, err)
		}
	}
	if err := kindGiven(memtools.Decision); err != nil {
		t.Error(err)
	}
}
