package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// TestDamagedRegistry opens a project whose registry is no database any more: it
// is kept, its threads come back from their folders, and both are said. A
// thread's process leaves it alone.
func TestDamagedRegistry(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	var said, logged bytes.Buffer
	sys := testSystem(dir, map[string]string{"USER_SPACE": dir})
	sys.Stderr = &said
	log := zerolog.New(&logged)
	open := func() *project {
		t.Helper()
		p, err := openProject(t.Context(), sys, dir, log)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := open()
	rec, _, err := store.Register(t.Context(), p.store, store.NewThread{
		Kind: thread.KindDirective, Directive: "work", Now: time.Unix(1, 0),
	}, func(thread.ID) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	state := placetest.Dir(dir)
	for id, content := range map[thread.ID]*thread.Meta{rec.ThreadID: {
		ThreadID: rec.ThreadID, Kind: rec.Kind, Directive: rec.Directive, Status: thread.Error, CreatedAt: rec.CreatedAt,
		UpdatedAt: rec.CreatedAt, Outcome: &thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "c", Message: "m"}},
	}, "foreign-1": {ThreadID: "another-1"}} {
		f := folder.Of(state, id)
		if err := f.Make(); err != nil {
			t.Fatal(err)
		}
		if err := f.WriteMeta(*content, p.state.Home().Seal); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "registry.db"), []byte(strings.Repeat("no database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := assemble(t.Context(), sys, dir, log, plainStore); err == nil {
		t.Error("a thread's process has opened a damaged registry")
	}
	if said.Len() != 0 {
		t.Errorf("said %s", said.String())
	}

	p = open()
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	got, err := p.store.Get(t.Context(), rec.ThreadID)
	if err != nil || got.Status != thread.Error || got.Outcome.Error.Code != "c" {
		t.Errorf("rebuilt %+v, %v", got, err)
	}
	kept, err := filepath.Glob(filepath.Join(state, "registry.db.corrupt-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	for _, want := range []string{filepath.Base(kept[0]), "1 thread and", "not rebuilt: foreign-1"} {
		if !strings.Contains(said.String(), want) || !strings.Contains(logged.String(), want) {
			t.Errorf("%q is not in\n%sor\n%s", want, said.String(), logged.String())
		}
	}
	said.Reset()
	for _, ending := range []string{"", "-wal", "-shm"} { // under the open project
		if err := os.WriteFile(filepath.Join(state, "registry.db"+ending), []byte(strings.Repeat("no database", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A row that was asked for before may be answered from memory for a moment.
	if got, _, err := p.store.List(t.Context(), store.Filter{}); err != nil || len(got) != 1 || got[0].Status != thread.Error {
		t.Errorf("rebuilt while open: %+v, %v", got, err)
	}
	if !strings.Contains(said.String(), "1 thread and") {
		t.Errorf("said %s", said.String())
	}
	said.Reset()
	if err := open().Close(); err != nil || said.Len() != 0 {
		t.Errorf("opened again: %v, said %s", err, said.String())
	}
}
