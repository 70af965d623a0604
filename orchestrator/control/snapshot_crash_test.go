package control

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place"
)

// keeperOf keeps the snapshots of a project.
func keeperOf(project string, home folder.Home) *snapshot.Keeper {
	now := time.Now
	local := snapshot.Local{Dir: home.Snapshots, Now: now}
	k := &snapshot.Keeper{Local: local, Now: now, Maker: &snapshot.Maker{
		Roots: rootsOf(project), Store: local, Now: now, Seal: func() *place.Seal { return home.Seal },
		Program: func() snapshot.Program { return snapshot.Program{Version: "1", System: snapshot.HashOf(nil)} },
		Index:   func() string { return filepath.Join(home.Snapshots(), "index") },
	}}
	k.Layouts = func() (snapshot.Layouts, error) {
		return snapshot.Layouts{Dir: filepath.Join(filepath.Dir(project), "items"), Now: now, Crashpoints: k.Maker.Crashpoints}, nil
	}
	return k
}

// withSnapshots is a scene whose threads work by snapshots, so many of them at a time.
func withSnapshots(t *testing.T, slots string) *scene {
	t.Helper()
	s := newScene(t)
	s.write("config/agent/agent.yaml", "provider: {default: scripted}\nthreads: {soft_stop_seconds: 1, term_seconds: 0.2, snapshot: always, max_running: "+slots+"}\n")
	return s
}

// TestKilledSnapshotter kills a spawner at each step of taking the items of a thread, and
// behind them. Another start works by a whole snapshot of the same items, and what no thread
// works by goes when its time has come, and nothing else.
func TestKilledSnapshotter(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, at := range []thread.Crashpoint{
		snapshot.CrashPut, snapshot.CrashContents, snapshot.CrashManifest, snapshot.CrashIndexed,
		scheduler.CrashRegistered, scheduler.CrashPrepared, scheduler.CrashDescribed,
	} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := withSnapshots(t, "5")
			s.dieAfter(at, "start", "")
			id := s.start("work", "")
			all := s.c.Threads.Snapshots
			name := s.snapshotOf(id)
			s.noError(all.Verify(s.ctx, name))
			s.write("directives/later.md", "of another snapshot")
			_, err := all.Take(s.ctx)
			s.noError(err)
			all.Now = func() time.Time { return time.Now().Add(2 * snapshot.Grace) }
			if did, err := s.c.Threads.SweepItems(s.ctx); err != nil || did == "" {
				s.Errorf("what no thread works by stays: %q, %v", did, err)
			}
			s.noError(all.Verify(s.ctx, name))
			s.order(id, "complete")
		})
	}
}

func (s *scene) snapshotOf(id thread.ID) snapshot.Hash {
	s.Helper()
	meta, err := s.c.Threads.OwnMeta(id)
	s.noError(err)
	if meta.Snapshot == "" {
		s.Fatalf("thread %s works by no snapshot", id)
	}
	return snapshot.Hash(meta.Snapshot)
}

// TestKilledLayingOut kills a server at each step of laying out the items of a thread that
// was queued when they were changed: the next server starts it all the same, once, with the
// items laid out as they were.
func TestKilledLayingOut(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, at := range []thread.Crashpoint{snapshot.CrashLaidFile, snapshot.CrashLaid, snapshot.CrashInPlace} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := withSnapshots(t, "1")
			running := s.start("idle", "")
			queued := s.begin("work", "").ThreadID
			name := s.snapshotOf(queued)
			s.write("directives/work.md", "changed meanwhile")
			s.write("config/agent/agent.yaml", "provider: {default: scripted}\nthreads: {soft_stop_seconds: 1, term_seconds: 0.2, snapshot: always, max_running: 2}\n")
			s.dieAfter(at, "dispatch", "")
			s.controller().Queue.DispatchAndLog(s.ctx, true, nil)
			s.order(queued, "claim")
			layouts, err := s.c.Threads.Snapshots.Layouts()
			s.noError(err)
			m, err := s.c.Threads.Snapshots.Open(s.ctx, name)
			s.noError(err)
			for _, f := range m.Files {
				text, err := os.ReadFile(filepath.Join(layouts.Dir, string(name), string(f.Space), filepath.FromSlash(f.Path)))
				if err != nil || snapshot.HashOf(text) != f.Hash {
					s.Errorf("%s is laid out as %q, %v", f.Path, text, err)
				}
			}
			s.order(queued, "complete")
			s.order(running, "complete")
			s.wantLoad(0, 0)
		})
	}
}
