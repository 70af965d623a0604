package control

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// TestRebuild damages both databases below threads in every state. From their
// folders come back: how they ended, who is whose child, what was spent. A live
// thread goes on, a dead one is found dead, one in the queue runs.
func TestRebuild(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 4)
	root := s.start("idle", "")
	done, dead, decided := s.start("work", root), s.start("work", root), s.start("work", root)
	s.order(done, "spend 7", "complete")
	s.order(decided, "spend 5", "decide")
	<-s.puppet(done).gone // it would start the next in the queue
	s.setSlots(1)
	queued := s.begin("work", root).ThreadID
	s.setSlots(4)
	s.c.Threads.LeaveChildren()
	for _, id := range []thread.ID{dead, decided} {
		s.noError(syscall.Kill(s.puppet(id).pid, syscall.SIGKILL))
		<-s.puppet(id).gone
	}
	foreign, torn := s.folder("foreign-1"), s.folder("torn-1")
	for dir, content := range map[folder.Folder]string{foreign: s.read(s.folder(done).Meta()), torn: "{"} {
		s.noError(dir.Make())
		s.noError(os.WriteFile(dir.Meta(), []byte(content), 0o600))
	}
	s.noError(os.Symlink(string(s.folder(done)), string(s.folder("linked-1"))))

	rebuilt := s.rebuild()
	if rebuilt.Threads != 5 || rebuilt.Budgets != 5 || len(rebuilt.Skipped) != 3 {
		s.Errorf("rebuilt %+v", rebuilt)
	}
	c := s.controller()
	health, err := c.Health.Report(s.ctx, health.Request{}, nil)
	if err != nil || len(health.SetAside) == 0 || health.ThreadCount != 5 || health.Queued != 1 {
		s.Errorf("health %+v, %v", health, err)
	}
	for id, want := range map[thread.ID]thread.State{
		root: thread.Running, done: thread.Completed, dead: thread.Error, decided: thread.Completed, queued: thread.Created,
	} {
		status, err := c.View.Status(s.ctx, id)
		if err != nil || status.Status != want || (id != root) != (status.ParentID == root) {
			s.Errorf("%s: %+v, %v", id, status, err)
		}
	}
	if rec, err := c.Threads.Store.Get(s.ctx, root); err != nil || rec.PID != s.puppet(root).pid || rec.SpawnCount != 4 {
		s.Errorf("the live thread: %+v, %v", rec, err)
	}
	s.noError(c.Queue.Dispatch(s.ctx))
	s.order(queued, "claim", "complete")
	s.order(root, "spend 1", "complete")
	if r := s.wait(c, WaitAll, root, queued); !r.Success {
		s.Errorf("waited for %+v", r)
	}
	_, tree, err := c.Threads.Store.Tree(s.ctx, root)
	if want := (store.TreeSpend{Actual: 13, Threads: 5}); err != nil || tree != want {
		s.Errorf("tree %+v, %v, want %+v", tree, err, want)
	}
}

func (s *scene) read(path string) string {
	s.Helper()
	content, err := os.ReadFile(path)
	s.noError(err)
	return string(content)
}

// rebuild damages the databases, sets them aside and makes their rows again.
func (s *scene) rebuild() recovery.Rebuilt {
	s.Helper()
	state := placetest.Dir(s.project)
	for _, name := range []string{"registry.db", "budget_ledger.db"} {
		path := filepath.Join(state, name)
		s.noError(os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600))
		for _, ending := range []string{"-wal", "-shm"} { // it would mend the file
			s.noError(os.RemoveAll(path + ending))
		}
		aside, err := sqlite.SetAside(s.ctx, path, testTime, s.c.Threads.Records.Seal().Mark)
		if err != nil || aside == "" {
			s.Fatalf("set aside as %q, %v", aside, err)
		}
	}
	db, err := sqlite.Open(s.ctx, state, sqlite.Options{Mark: s.c.Threads.Records.Seal().Mark})
	s.noError(err)
	defer func() { s.noError(db.Close()) }()
	if lost, err := db.Lost(s.ctx); err != nil || !lost {
		s.Errorf("lost %t, %v", lost, err)
	}
	rebuilt, err := (&recovery.Rebuilder{Records: s.c.Threads.Records, Store: db, Life: s.c.Threads.Life, Host: "host"}).Run(s.ctx)
	s.noError(err)
	return rebuilt
}
