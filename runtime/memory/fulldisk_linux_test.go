package memory_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/memory"
	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/spaces/disktest"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	entries "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

// TestFullDisk: on a full disk what is noted is refused and nothing of it is kept, what
// stands is recalled, and with room again both go on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if !disktest.Isolated(t) {
		return
	}
	disk := disktest.Mount(t, t.TempDir(), "4m")
	s := sceneIn(t, filepath.Join(disk.Dir, "memory.db"), place.NewSeal(newKey(t, 1), "here"))
	old := s.write(threadWriter("one"), entries.Decision, "Port", "the service listens on port 8080")

	disk.Fill()
	var full error
	for range 200 { // the last page of the file may have room for more writes
		if full = s.fill(); full != nil {
			break
		}
	}
	if !errors.Is(full, syscall.ENOSPC) {
		t.Fatalf("a full disk: %v", full)
	}
	before := s.titles()
	if _, err := s.Write(t.Context(), threadWriter("one"), entries.New{
		Kind: entries.Decision, Title: "Later", Text: strings.Repeat("a later port ", 100), Supersedes: []string{old.Key},
	}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("in the place of another: %v", err)
	}
	if got := s.titles(); !slices.Equal(got, before) || slices.Contains(got, "+Port") {
		t.Errorf("half of it is kept: %q, before %q", got, before)
	}
	if found := s.recall("which port does the service listen on"); found.Count == 0 || found.Entries[0].Key != old.Key {
		t.Errorf("on a full disk: %+v", found)
	}

	disk.Empty()
	s.write(threadWriter("one"), entries.Decision, "Later", "the service listens on a later port", old.Key)
	if got := s.titles(); !slices.Contains(got, "+Port") || !slices.Contains(got, "Later") {
		t.Errorf("with room again: %q", got)
	}
	if err := s.ForgetThread(t.Context(), "one"); err != nil {
		t.Error(err)
	}
	if rows, err := s.index.List(t.Context(), rag.Listing{Namespace: memory.Namespace, Project: rag.AllProjects}); err != nil || len(rows) != 0 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// fill notes something long that is unlike anything else.
func (s *scene) fill() error {
	word := s.now.Format("150405")
	_, err := s.Write(s.t.Context(), threadWriter("one"), entries.New{Kind: entries.Discovery, Title: "Number " + word, Text: strings.Repeat("x"+word+" ", 200)})
	return err
}
