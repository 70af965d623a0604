//go:build unix

package resolve_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// A pipe has nobody at its other end: opening it would wait for ever.
func TestPipesAndSockets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(w.project, ".ai", "knowledge")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantUnreadable(t, w, "pipe", "a named pipe")

	// Where the name of the folder is too long for a socket, the pipe has to do.
	name := filepath.Join(dir, "socket.md")
	if socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"}); err == nil {
		t.Cleanup(func() { _ = socket.Close() })
		wantUnreadable(t, w, "socket", "a socket")
	}
}

func TestNoPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := write(t, w.project, "knowledge/closed.md", "x")
	write(t, w.project, "knowledge/shut/in.md", "x")
	write(t, w.project, "knowledge/open.md", "x")
	shut := filepath.Join(w.project, ".ai", "knowledge", "shut")
	for _, name := range []string{path, shut} {
		if err := os.Chmod(name, 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(shut, 0o755) })
	if file, err := os.Open(path); err == nil {
		_ = file.Close()
		// Root may read everything, so only the listing is left to check.
		if entries, err := w.All(item.Knowledge); err != nil || len(entries) != 3 {
			t.Errorf("listed %+v, %v", entries, err)
		}
		return
	}
	wantUnreadable(t, w, "closed", "permission denied")
	wantUnreadable(t, w, "shut/in", "permission denied")
	entries, err := w.All(item.Knowledge)
	if err != nil || len(entries) != 4 { // closed, open, and two of the system
		t.Errorf("listed %+v, %v", entries, err)
	}
}

// TestAttackItemFolderIsALink: a repository makes its folder of knowledge a link to its settings, to keys or to the state of threads, so that ids name their files. Such a folder holds no items, and the error says where it leads.
func TestAttackItemFolderIsALink(t *testing.T) {
	t.Parallel()
	for target, refused := range map[string]bool{
		"state": true, "config": true, "config/keys": true, "state/threads": true, "texts": false, "../.ai/state": true,
	} {
		w := newWorld(t)
		for _, dir := range []string{"state/threads", "config/keys", "texts"} {
			write(t, w.project, dir+"/note.md", "x")
		}
		if err := os.Symlink(target, filepath.Join(w.project, ".ai", "knowledge")); err != nil {
			t.Fatal(err)
		}
		_, err := w.Find(item.Knowledge, "note")
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "holds no items") && !strings.Contains(err.Error(), "escapes") {
			t.Errorf("%s: %v", target, err)
		}
	}
}
