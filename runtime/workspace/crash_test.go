package workspace

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo/gitrepotest"
)

// order is what another process of this test is to do.
type order struct {
	Project, User, Key string
	Workspace          thread.Workspace
	Write              map[string]string // in the workspace
	Look, Apply        bool
	Program            string // git
	Bundles            string // folder of what travels
	Travel             string // what is done of that: pack, receive or result
	DieAt              thread.Crashpoint
	DieOn              int // so many times there, from 1
}

const orderVariable = "WORKSPACE_ORDER"

func TestMain(m *testing.M) {
	if text := os.Getenv(orderVariable); text != "" {
		if err := obey(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(gitrepotest.Run(m))
}

// obey makes a workspace, writes into it, and applies it, as a process of its own.
func obey(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	key, err := sign.LoadState(o.Key)
	if err != nil {
		return err
	}
	seal, met := placetest.Seal(key), 0
	l := &Local{Project: o.Project, User: o.User, Seal: func() *place.Seal { return seal }, Environ: os.Environ(), Scratch: gitrepotest.Scratch(), Program: o.Program, Now: time.Now}
	l.Crashpoints = func(at thread.Crashpoint) {
		if at == o.DieAt {
			if met++; met == o.DieOn {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	}
	ctx, w := context.Background(), o.Workspace
	if o.Travel != "" {
		return o.travel(ctx, l)
	}
	if len(o.Write) > 0 {
		_, work, leave, err := l.Enter(ctx, w)
		if err != nil {
			return err
		}
		for name, text := range o.Write {
			if err := os.WriteFile(filepath.Join(work.Root, name), []byte(text), 0o600); err != nil {
				return err
			}
		}
		leave()
	}
	if o.Look {
		_, err = l.Changes(ctx, w)
	}
	if o.Apply {
		_, err = l.Apply(ctx, w, ApplyRequest{})
	}
	return err
}

// process gives an order to another process. Dies says that it is to be killed.
func (h *house) process(o order) (died bool) {
	h.t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), orderVariable+"="+string(text))
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Sys().(syscall.WaitStatus).Signaled() {
		return true
	}
	if err != nil {
		h.t.Fatalf("%v: %s", err, out)
	}
	return false
}

// processHouse is a house whose seal other processes have too.
func processHouse(t *testing.T) (*house, order) {
	t.Helper()
	h := newHouse(t)
	keys := t.TempDir()
	key, err := sign.EnsureState(keys, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	seal := placetest.Seal(key)
	h.Seal = func() *place.Seal { return seal }
	return h, order{Project: h.Project, User: h.User, Key: keys}
}

// TestCrashWalk kills a process at every step of making a workspace and of applying it,
// and at every file. The next process finds all files applied or none, nothing beside
// them, and can apply what is left.
func TestCrashWalk(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, at := range Crashpoints() {
		for on := 1; !travelling(at); on++ {
			if done := crashOnce(t, at, on, false); done {
				break
			}
			if at == CrashApplyPlaced || at == CrashApplySwept {
				crashOnce(t, at, on, true)
			}
			if on == 2 && !longtest.Soak() { // a sample
				break
			}
		}
	}
}

// crashOnce kills a process at a point. Edited says that the person changes a file
// before anybody comes; done, that the point was not met so often.
func crashOnce(t *testing.T, at thread.Crashpoint, on int, edited bool) (done bool) {
	t.Helper()
	h, o := processHouse(t)
	h.base(map[string]string{"a": "x\n", "b": "x\n", "goes": "x\n"})
	o.Workspace = thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "d/t-1"}
	making := strings.HasPrefix(string(at), "workspace.")
	if !making {
		_, work := h.enterNamed(o.Workspace)
		puts(t, work.Root, map[string]string{"a": "y\n", "b": "y\n", "goes": "", "made/new": "y\n"})
	}
	before := has(t, h.Project)
	o.DieAt, o.DieOn, o.Apply = at, on, !making
	if making {
		o.Write = map[string]string{"c": "y\n"}
	}
	if !h.process(o) {
		if on == 1 {
			t.Errorf("%s was not met", at)
		}
		return true
	}
	if making {
		if _, err := h.Changes(t.Context(), o.Workspace); err == nil {
			t.Errorf("%s: a workspace that was not finished is one", at)
		}
		_, work := h.enterNamed(o.Workspace)
		same(t, string(at), has(t, work.Root), before)
		return false
	}
	if edited {
		puts(t, h.Project, map[string]string{"b": "person\n"})
	}
	if _, err := h.Sweep(t.Context(), nil); err != nil {
		t.Fatalf("%s %d: %v", at, on, err)
	}
	after := maps.Clone(before)
	maps.Copy(after, map[string]string{"a": "y\n", "b": "y\n", "made/new": "y\n"})
	delete(after, "goes")
	if edited {
		before["b"], after["b"] = "person\n", "person\n"
	}
	now := has(t, h.Project)
	if fmt.Sprint(now) != fmt.Sprint(before) && fmt.Sprint(now) != fmt.Sprint(after) {
		t.Errorf("%s %d edited %v: %q", at, on, edited, now)
	}
	if !edited {
		h.apply(o.Workspace, ApplyRequest{})
		same(t, string(at)+" at last", has(t, h.Project), after)
	}
	return false
}

// TestDraftsGone: a process is killed before it moves files into their places, and the new
// files are removed by somebody: nothing is applied, and nothing is in the way of it.
func TestDraftsGone(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, at := range []thread.Crashpoint{CrashApplyReady, CrashApplyPlaced} {
		h, o := processHouse(t)
		h.base(map[string]string{"a": "x\n", "b": "x\n"})
		o.Workspace = thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "d/t-1"}
		_, work := h.enterNamed(o.Workspace)
		puts(t, work.Root, map[string]string{"a": "y\n", "b": "y\n"})
		before := has(t, h.Project)
		if o.Apply, o.DieAt, o.DieOn = true, at, 1; !h.process(o) {
			t.Fatalf("%s was not met", at)
		}
		drafts, err := filepath.Glob(filepath.Join(h.Project, ".rye-apply-*[0-9]"))
		if err != nil || len(drafts) == 0 {
			t.Fatalf("%v, %v", drafts, err)
		}
		for _, draft := range drafts {
			if err := os.Remove(draft); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := h.Sweep(t.Context(), nil); err != nil {
			t.Error(err)
		}
		same(t, string(at), has(t, h.Project), before)
		h.apply(o.Workspace, ApplyRequest{})
		same(t, string(at)+" at last", has(t, h.Project), map[string]string{"a": "y\n", "b": "y\n"})
	}
}

// TestTwentyWriters: twenty processes make a workspace each, write into it and apply it,
// all at once. No file of any is lost, and what all of them have changed is in conflict.
func TestTwentyWriters(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h, o := processHouse(t)
	lines := strings.Repeat("line\n", 200)
	h.base(map[string]string{"shared": lines})
	const writers = 20
	done := make(chan error, writers)
	for i := range writers {
		o := o
		o.Workspace = thread.Workspace{Type: thread.WorkspaceWorktree, Name: thread.NewWorkspaceName(), Of: "d/t-1"}
		o.Write = map[string]string{fmt.Sprintf("own-%d", i): "mine\n"}
		o.Apply = true
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), orderVariable+"="+string(text))
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			done <- err
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	now := has(t, h.Project)
	for i := range writers {
		if now[fmt.Sprintf("own-%d", i)] != "mine\n" {
			t.Errorf("the file of writer %d is lost", i)
		}
	}
	if now["shared"] != lines || len(now) != writers+1 {
		t.Errorf("%d files", len(now))
	}
	if out := h.git("fsck", "--no-dangling"); out != "" {
		t.Error(out)
	}
}
