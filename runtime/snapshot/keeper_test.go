package snapshot_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// keeper is that of a machine, which shares with others what is in shared; nil: nobody.
func (s *scene) keeper(t testing.TB, shared snapshot.Store) *snapshot.Keeper {
	t.Helper()
	dir := t.TempDir()
	k := &snapshot.Keeper{
		Maker: s.Maker, Local: s.store, Now: s.clock.Now,
		Layouts: func() (snapshot.Layouts, error) { return s.layouts(filepath.Join(dir, "items")), nil },
	}
	if shared != nil {
		k.Shared = func(context.Context) (snapshot.Store, error) { return shared, nil }
	}
	return k
}

// TestTwoMachines: another machine finds the items of a thread that was started on the
// first, whatever its own are, and uses its own as they lie there where they are the same.
func TestTwoMachines(t *testing.T) {
	t.Parallel()
	one, two := newScene(t), newScene(t)
	two.seal, two.clock = one.seal, one.clock // those of the fleet
	two.store = localIn(two.state, two.clock)
	two.Maker = two.maker()
	shared := localIn(t.TempDir(), one.clock)
	write(t, one.project, ".ai/tools/team/a.py", "of one")
	write(t, two.project, ".ai/tools/team/a.py", "of two")
	write(t, two.project, ".ai/tools/team/b.py", "only of two")
	starts, runs := one.keeper(t, shared), two.keeper(t, shared)
	pins, err := starts.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if folder, err := starts.Ready(t.Context(), pins.Name()); folder != "" || err != nil {
		t.Errorf("where it was started it is laid out in %q, %v", folder, err)
	}
	folder, err := runs.Ready(t.Context(), pins.Name())
	if err != nil {
		t.Fatal(err)
	}
	there := resolve.New(resolve.Roots{Project: two.project, User: two.user}).At(snapshot.RootsOf(folder))
	if found, err := there.Find(item.Tool, "team/a"); err != nil || string(found.Content) != "of one" {
		t.Errorf("found is %+v, %v", found, err)
	}
	if _, err := there.Find(item.Tool, "team/b"); !errors.As(err, new(*resolve.NotFoundError)) {
		t.Errorf("what only the other machine has: %v", err)
	}
	write(t, two.project, ".ai/tools/team/a.py", "of one")
	write(t, one.project, ".ai/tools/team/b.py", "only of two")
	one.clock.Add(time.Minute)
	if pins, err = starts.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	if folder, err := runs.Ready(t.Context(), pins.Name()); folder != "" || err != nil {
		t.Errorf("the same items are laid out in %q, %v", folder, err)
	}
	if err := runs.Verify(t.Context(), pins.Name()); err != nil {
		t.Error(err)
	}
}

// TestOwn: below the thread of a process the items are those that the thread works by,
// without a look at those of the machine.
func TestOwn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	write(t, s.project, ".ai/tools/a.py", "a")
	k := s.keeper(t, nil)
	pins, err := k.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.project, ".ai/tools/a.py", "b")
	s.clock.Add(time.Minute)
	folder, err := k.Ready(t.Context(), pins.Name())
	if err != nil || folder == "" {
		t.Fatalf("what has changed is laid out in %q, %v", folder, err)
	}
	k.Works(snapshot.Own{Pins: pins, Folder: "there"})
	if folder, err := k.Below(t.Context(), pins.Name()); folder != "there" || err != nil {
		t.Errorf("below the thread it is in %q, %v", folder, err)
	}
	if again, err := k.Ready(t.Context(), pins.Name()); again != folder || err != nil {
		t.Errorf("for others it is in %q, %v", again, err)
	}
	if got, err := k.Pins(t.Context(), pins.Name()); got != pins || err != nil {
		t.Errorf("its pins are %v, %v", got, err)
	}
}

// TestLostSnapshot: a snapshot that is nowhere, or altered, is no reason to use other items.
func TestLostSnapshot(t *testing.T) {
	t.Parallel()
	one, two := newScene(t), newScene(t)
	shared := localIn(t.TempDir(), one.clock)
	for what, name := range map[string]snapshot.Hash{"missing": snapshot.HashOf([]byte("x")), "no manifest": putIn(t, shared, "a tool"), "no hash": "x"} {
		for _, k := range []*snapshot.Keeper{two.keeper(t, shared), two.keeper(t, nil)} {
			if folder, err := k.Ready(t.Context(), name); err == nil {
				t.Errorf("%s: ready in %q", what, folder)
			}
			if err := k.Verify(t.Context(), name); err == nil {
				t.Errorf("%s verifies", what)
			}
		}
	}
	away := errors.New("the server is away")
	k := two.keeper(t, nil)
	k.Shared = func(context.Context) (snapshot.Store, error) { return nil, away }
	for what, err := range map[string]error{
		"take": second(k.Take(t.Context())), "ready": second(k.Ready(t.Context(), snapshot.HashOf(nil))), "name": k.Name(t.Context(), "a/b-1", snapshot.HashOf(nil)),
		"collect": second(k.Collect(t.Context(), nil)), "forget": k.Forget(t.Context(), "a/b-1"),
	} {
		if !errors.Is(err, away) {
			t.Errorf("%s without the server: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestKeeperCollects: with a thread what it works by goes, here and where it is shared.
func TestKeeperCollects(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	shared := localIn(t.TempDir(), s.clock)
	write(t, s.project, ".ai/tools/a.py", "a")
	k := s.keeper(t, shared)
	pins, err := k.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Name(t.Context(), "t/one-1", pins.Name()); err != nil {
		t.Fatal(err)
	}
	s.clock.Add(2 * snapshot.Grace)
	exists := func(context.Context, thread.ID) (bool, error) { return true, nil }
	if done, err := k.Collect(t.Context(), exists); err != nil || done.Contents != 0 {
		t.Errorf("of a thread that is there %+v goes, %v", done, err)
	}
	if err := k.Forget(t.Context(), "t/one-1"); err != nil {
		t.Fatal(err)
	}
	if done, err := k.Collect(t.Context(), exists); err != nil || done.Contents != 4 || len(s.allBlobs(t)) != 0 {
		t.Errorf("of one that has gone %+v goes, %v", done, err)
	}
}
