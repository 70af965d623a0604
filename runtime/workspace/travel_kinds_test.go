package workspace

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestTravelLinks: links travel as links, also those that lead out of the project.
func TestTravelLinks(t *testing.T) {
	t.Parallel()
	here, there, sent := machines(t)
	links := map[string]string{"link": "kept", "out": "/nowhere/else"}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(here.Project, name)); err != nil {
			t.Fatal(err)
		}
	}
	_, work := there.enterNamed(here.pack(sent))
	for name, to := range links {
		if got, err := os.Readlink(filepath.Join(work.Root, name)); got != to || err != nil {
			t.Errorf("%s leads to %q, %v", name, got, err)
		}
	}
}

// TestTravelShallow: of a clone without its history what the remote has is needed; where no
// remote has anything the files travel without a history.
func TestTravelShallow(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	origin, there, sent := machines(t)
	origin.base(map[string]string{"later": "pushed\n"})
	there.git("fetch", "-q", origin.Project, "main")
	here := houseAt(t, filepath.Join(realDir(t), "clone"), realDir(t))
	here.Bundles = there.Bundles
	origin.git("clone", "-q", "--depth", "1", "file://"+origin.Project, here.Project)
	puts(t, here.Project, map[string]string{"own": "own\n"})
	for _, remote := range []bool{true, false} {
		if !remote {
			for _, ref := range []string{"refs/remotes/origin/HEAD", "refs/remotes/origin/main"} {
				here.git("update-ref", "--no-deref", "-d", ref)
			}
		}
		w := here.pack(sent)
		if (w.Needs != "") != remote {
			t.Errorf("with a remote %t it needs %q", remote, w.Needs)
		}
		if _, work := there.enterNamed(w); has(t, work.Root)["own"] != "own\n" || has(t, work.Root)["later"] != "pushed\n" {
			t.Errorf("with a remote %t the files are %v", remote, has(t, work.Root))
		}
	}
}

// TestTravelTooLarge: what is too large is refused, each way, and what to do is told. The
// files that a thread has left stay where they are.
func TestTravelTooLarge(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	here, there, sent := machines(t)
	w := here.pack(sent)
	large := make([]byte, maxBundle+1)
	_, _ = rand.Read(large) // never fails
	refused := func(err error) {
		t.Helper()
		if f := tool.AsFault(err); err == nil || f.Code != tool.CodeUnsupported || !strings.Contains(f.Message, "too large to travel") || f.Try == "" {
			t.Errorf("it is %v", err)
		}
	}
	now, work := there.enterNamed(w)
	if err := os.WriteFile(filepath.Join(work.Root, "large"), large, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := there.PackResult(t.Context(), now)
	refused(err)
	if left := has(t, work.Root); len(left["large"]) != len(large) {
		t.Errorf("%d bytes are left", len(left["large"]))
	}
	if err := os.Rename(filepath.Join(work.Root, "large"), filepath.Join(here.Project, "large")); err != nil {
		t.Fatal(err)
	}
	_, _, err = here.Pack(t.Context(), thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "a-1"})
	refused(err)
}

// TestTravelAt: while somebody works in a workspace the machine has it alone. Others refuse it,
// and take it when that has ended; a thread that works there after another's end keeps it.
func TestTravelAt(t *testing.T) {
	t.Parallel()
	here, there, sent := machines(t)
	here.Machine, there.Machine, there.Called = "here", "there", "builder"
	w := here.pack(sent)
	now, work := there.enterNamed(w)
	if now.At != "there" || now.AtName != "builder" {
		t.Fatalf("it is at %q (%q)", now.At, now.AtName)
	}
	puts(t, work.Root, map[string]string{"kept": "done\n"})
	elsewhere := func(err error) {
		t.Helper()
		if !errors.As(err, new(*ElsewhereError)) {
			t.Errorf("here it is %v", err)
		}
	}
	elsewhere(here.Check(t.Context(), now))
	elsewhere(here.Receive(t.Context(), now))
	_, _, _, err := here.Enter(t.Context(), now)
	elsewhere(err)
	_, _, err = here.PackResult(t.Context(), now)
	elsewhere(err)
	if err := there.Check(t.Context(), now); err != nil {
		t.Errorf("there it is %v", err)
	}
	_, _, leave, err := (&Local{
		Project: there.Project, User: there.User, Seal: there.Seal, Environ: there.Environ, Scratch: there.Scratch, Now: there.Now, Bundles: there.Bundles, Machine: "there",
	}).Enter(t.Context(), now) // another process, as far as locks tell
	if err != nil {
		t.Fatal(err)
	}
	left, data, err := there.PackResult(t.Context(), now)
	if err != nil || left.At != "there" || left.Result == "" {
		t.Fatalf("while another works in it, it is left as %+v: %v", left, err)
	}
	sent[left.ResultBundle] = data
	leave()
	left, data, err = there.PackResult(t.Context(), left)
	if err != nil || left.At != "" || len(data) > 0 {
		t.Errorf("when that has left it is %+v, with %d new bytes: %v", left, len(data), err)
	}
	if err := here.Receive(t.Context(), left); err != nil {
		t.Error(err)
	}
}
