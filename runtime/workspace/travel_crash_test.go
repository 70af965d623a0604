package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// travelling reports whether a crash point is one of what travels.
func travelling(at thread.Crashpoint) bool {
	return strings.HasPrefix(string(at), "pack.") || strings.HasPrefix(string(at), "receive.")
}

// travel packs a workspace, makes it of what travelled, or packs what was left, in a process.
func (o order) travel(ctx context.Context, l *Local) error {
	l.Machine = "m"
	l.Bundles = func(_ thread.ID, name string) ([]byte, error) { return os.ReadFile(filepath.Join(o.Bundles, name)) }
	switch o.Travel {
	case "pack":
		_, _, err := l.Pack(ctx, o.Workspace)
		return err
	case "receive":
		_, _, leave, err := l.Enter(ctx, o.Workspace)
		if err == nil {
			leave()
		}
		return err
	}
	_, _, err := l.PackResult(ctx, o.Workspace)
	return err
}

// TestCrashTravel kills a process at each step of packing a workspace, of making it of what
// travelled, and of packing what was left. Done again each comes to what it would have.
func TestCrashTravel(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, at := range Crashpoints() {
		if !travelling(at) {
			continue
		}
		h, o := processHouse(t)
		h.base(map[string]string{"a": "x\n"})
		puts(t, h.Project, map[string]string{"b": "uncommitted\n"})
		files := map[string]string{"a": "x\n", "b": "uncommitted\n"}
		o.Bundles, o.DieAt, o.DieOn = realDir(t), at, 1
		h.Machine = "m"
		h.Bundles = func(_ thread.ID, name string) ([]byte, error) { return os.ReadFile(filepath.Join(o.Bundles, name)) }
		o.Workspace = thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "d/t-1"}
		refs := h.git("for-each-ref") + h.status()
		pack := func() {
			t.Helper()
			w, data, err := h.Pack(t.Context(), o.Workspace)
			if err != nil || w.Bundle == "" {
				t.Fatalf("%s: packed as %+v, %v", at, w, err)
			}
			if err := os.WriteFile(filepath.Join(o.Bundles, w.Bundle), data, 0o600); err != nil {
				t.Fatal(err)
			}
			o.Workspace = w
		}
		switch o.Travel, _, _ = strings.Cut(string(at), "."); {
		case at == CrashPackResult:
			pack()
			_, work := h.enterNamed(o.Workspace)
			puts(t, work.Root, map[string]string{"c": "done\n"})
			o.Travel = "result"
		case o.Travel == "receive":
			pack()
		}
		if !h.process(o) {
			t.Errorf("%s was not met", at)
		}
		if o.Travel == "pack" {
			pack()
		}
		if o.Travel == "result" {
			w, data, err := h.PackResult(t.Context(), o.Workspace)
			if err != nil || w.Result == "" || len(data) == 0 {
				t.Errorf("%s: what was left is packed as %+v, %v", at, w, err)
			}
			continue
		}
		_, work := h.enterNamed(o.Workspace)
		same(t, string(at), has(t, work.Root), files)
		if _, err := h.Sweep(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		if now := h.git("for-each-ref") + h.status(); now != refs {
			t.Errorf("%s: the repository is %s", at, now)
		}
	}
}
