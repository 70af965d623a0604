package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/disktest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// isFull reports whether an error tells a caller that the disk is full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || tool.AsFault(err).Code == tool.CodeDiskFull
}

// TestFullDisk: the disk of the user space, or that of the project, becomes full at every
// step of making a workspace and of applying it. The error says so, the project is as it
// was or whole, nothing stands beside its files, and the call works when there is room.
func TestFullDisk(t *testing.T) {
	longtest.Mark(t)
	if !disktest.Isolated(t) {
		return
	}
	for _, at := range append(Crashpoints(), "") { // first of all
		for _, full := range []string{"user", "project"} {
			if full == "project" && strings.HasPrefix(string(at), "workspace.") {
				continue // nothing is written there
			}
			t.Run(full+" "+string(at), func(t *testing.T) { fullAt(t, at, full) })
		}
	}
}

func fullAt(t *testing.T, at thread.Crashpoint, full string) {
	dirs := map[string]string{"project": realDir(t), "user": realDir(t)}
	disk := disktest.Mount(t, dirs[full], "4m")
	h := houseAt(t, dirs["project"], dirs["user"])
	h.git("init", "-q", "-b", "main")
	h.base(map[string]string{"a": "x\n", "b": "x\n", "goes": "x\n", "large": strings.Repeat("x", 1<<14)})
	before := has(t, h.Project)
	fill := func(met thread.Crashpoint) {
		if met == at {
			disk.Fill()
		}
	}
	room := func() {
		h.Crashpoints = nil
		disk.Empty()
	}
	is := thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "d/t-1"}
	if strings.HasPrefix(string(at), "workspace.") || at == "" {
		h.Crashpoints = fill
		fill("")
		_, _, leave, err := h.Enter(t.Context(), is)
		if err == nil {
			leave()
		} else if !isFull(err) {
			t.Errorf("made: %v", err)
		}
		room()
	}
	_, work, leave, err := h.Enter(t.Context(), is)
	if err != nil {
		t.Fatal(err)
	}
	after := map[string]string{"a": "y\n", "b": "y\n", "made/new": "y\n", "large": strings.Repeat("y", 1<<14)}
	puts(t, work.Root, after)
	puts(t, work.Root, map[string]string{"goes": ""})
	leave()

	h.Crashpoints = fill
	fill("")
	_, err = h.Apply(t.Context(), is, ApplyRequest{})
	if err != nil && !isFull(err) {
		t.Errorf("applied: %v", err)
	}
	room()
	now := has(t, h.Project)
	if _, is := now["made/new"]; is {
		same(t, "whole", now, after)
	} else {
		same(t, "as before", now, before)
	}
	if _, err := h.Sweep(t.Context(), nil); err != nil {
		t.Errorf("swept: %v", err)
	}
	if _, err := h.Apply(t.Context(), is, ApplyRequest{}); err != nil && !errors.As(err, new(*GoneError)) {
		t.Errorf("again: %v", err)
	}
	same(t, "at last", has(t, h.Project), after)
	if _, err := os.Stat(filepath.Join(h.Project, "made", "new")); err != nil {
		t.Error(err)
	}
}
