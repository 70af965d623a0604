package control

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// TestReconcileRelatives finds what the store itself lets nobody do: a parent
// without a row and a hand-over that only one side knows of. It also finds a dead
// thread that cannot be settled and a stranger that holds a lock.
func TestReconcileRelatives(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	parent, child, next, dead := s.start("idle", ""), s.start("work", ""), s.start("work", ""), s.start("idle", "")
	s.c.Threads.LeaveChildren()
	s.noError(syscall.Kill(s.puppet(dead).pid, syscall.SIGKILL))
	<-s.puppet(dead).gone
	moved := filepath.Join(s.project, "moved")
	s.noError(os.Rename(string(s.folder(dead)), moved))
	s.noError(os.Symlink(moved, string(s.folder(dead))))
	s.noError(s.folder("held-1").Make())
	lock, err := s.c.Threads.Life.Claim(life.Key{Thread: "held-1", Run: thread.NewRun()})
	s.noError(err)
	defer func() { _ = lock.Release() }()
	s.sql(`UPDATE threads SET parent_id = 'nobody-1' WHERE thread_id = ?`, child)
	s.sql(`UPDATE threads SET continuation_thread_id = ? WHERE thread_id = ?`, next, parent)
	s.sql(`UPDATE threads SET continuation_of = 'nobody-2' WHERE thread_id = ?`, next)

	server := s.controller()
	server.Threads.Now = func() time.Time { return time.Now().Add(time.Hour) }
	r, err := server.Health.Reconcile(s.ctx, health.ReconcileInput{}, nil)
	s.noError(err)
	want := []string{
		string(parent) + " " + "chain_broken", string(child) + " " + "parent_missing", string(next) + " " + "chain_broken",
		string(dead) + " " + "process_missing", string(dead) + " " + "folder_linked", "held-1 " + "row_missing",
	}
	if got := named(r.Findings); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		s.Errorf("found %q, want %q", got, want)
	}
	if count, err := server.Health.Disagreements(s.ctx); err != nil || count != len(want) {
		s.Errorf("%d disagreements, %v", count, err)
	}

	s.sql(`UPDATE threads SET parent_id = NULL, continuation_of = NULL, continuation_thread_id = NULL`)
	s.noError(os.Remove(string(s.folder(dead))))
	s.noError(os.Rename(moved, string(s.folder(dead))))
	r, err = server.Health.Reconcile(s.ctx, health.ReconcileInput{}, nil)
	if err != nil || !slices.Equal(named(r.Findings), []string{"held-1 " + "row_missing"}) || !slices.Equal(r.Settled, []thread.ID{dead}) {
		s.Errorf("after the repair: %+v, %v", r, err)
	}
}

// TestReconcileWhileThreadsEnd compares rows with files that are newer.
func TestReconcileWhileThreadsEnd(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.start("idle", "")
	other := s.controller()
	home, afterRows := other.Threads.Records.(records.Local).Home, 0
	other.Threads.Records = records.Local{Home: func() folder.Home { // asked for when the rows were read
		if afterRows++; afterRows == 1 {
			s.order(id, "complete")
			<-s.puppet(id).gone
		}
		return home()
	}}
	r, err := other.Health.Reconcile(s.ctx, health.ReconcileInput{}, nil)
	if err != nil || afterRows == 0 || len(r.Findings) != 0 || len(r.Settled) != 0 {
		s.Errorf("found %+v, %v", r, err)
	}
}

func named(findings []health.Finding) []string {
	var names []string
	for _, f := range findings {
		names = append(names, fmt.Sprintf("%s %s", f.ThreadID, f.Kind))
	}
	return slices.Sorted(slices.Values(names))
}

// sql changes the registry without the rules of the store.
func (s *scene) sql(query string, args ...any) {
	s.Helper()
	s.sqlOf("registry.db", query, args...)
}

// sqlOf changes a database of the project without the rules of the store.
func (s *scene) sqlOf(database, query string, args ...any) {
	s.Helper()
	db, err := sql.Open("sqlite", filepath.Join(placetest.Dir(s.project), database))
	s.noError(err)
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(s.ctx, query, args...)
	s.noError(err)
}

// TestReconcileElsewhere: where several machines have the threads, the rendering of a thread
// that another has run is not missed here; where one machine has them, it is.
func TestReconcileElsewhere(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	id := s.start("idle", "")
	s.order(id, "complete")
	<-s.puppet(id).gone
	s.noError(os.Remove(s.rendering(id)))
	missed := func(fleet threads.Fleet) bool {
		server := s.controller()
		server.Threads.Fleet = fleet
		r, err := server.Health.Reconcile(s.ctx, health.ReconcileInput{}, nil)
		s.noError(err)
		return slices.Contains(named(r.Findings), string(id)+" rendering_stale")
	}
	fleet := struct{ threads.Fleet }{}
	if !missed(fleet) {
		s.Error("that of a thread of this machine is not missed")
	}
	s.sql(`UPDATE threads SET host = 'elsewhere', boot_id = 'another' WHERE thread_id = ?`, id)
	if !missed(nil) {
		s.Error("without a fleet it is not missed")
	}
	if missed(fleet) {
		s.Error("that of a thread of another machine is missed")
	}
}
