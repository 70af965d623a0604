package control

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// mended applies what can be mended and returns the findings.
func (s *scene) mended(c *Controller, all bool) health.Reconciliation {
	s.Helper()
	r, err := c.Health.Reconcile(s.ctx, health.ReconcileInput{Apply: true, All: all}, nil)
	s.noError(err)
	return r
}

// ended runs a thread to its end.
func (s *scene) ended(root thread.ID) thread.ID {
	s.Helper()
	id := s.start("work", root)
	s.order(id, "say hello", "spend 7", "complete")
	<-s.puppet(id).gone
	return id
}

// TestAttackStrayFolders: the folder of threads is filled with thousands of directories that look like threads. A look goes through a thousand and says that there are more, and mending removes and believes none that holds a file of somebody.
func TestAttackStrayFolders(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	root := s.start("idle", "")
	kept := s.ended(root)
	text := s.read(s.folder(kept).Meta())
	const strays = 2500
	for i := range strays {
		dir := s.folder(thread.ID(fmt.Sprintf("stray-%d", i)))
		s.noError(dir.Make())
		s.noError(os.WriteFile(dir.Meta(), []byte(text), 0o600))
	}
	server := s.later()
	r := s.mended(server, false)
	if r.Folders > 1100 || !r.Partial || r.Mended != 0 {
		s.Errorf("%d folders, %d mended, partial %t", r.Folders, r.Mended, r.Partial)
	}
	h, err := server.Health.Report(s.ctx, health.Request{}, nil)
	if err != nil || !h.Partial || h.Folders > 1100 || len(h.Advice) == 0 {
		s.Errorf("health %+v, %v", h, err)
	}
	if r = s.mended(server, true); r.Mended != 0 || len(r.Findings) != strays {
		s.Errorf("%d findings, %d mended", len(r.Findings), r.Mended)
	}
	if found, err := filepath.Glob(filepath.Join(filepath.Dir(string(s.folder("stray-1"))), "stray-*", "thread.json")); err != nil || len(found) != strays {
		s.Errorf("%d are left, %v", len(found), err)
	}
	s.wantState(thread.Completed, kept)
}

// TestAttackCopiedThread: a signed thread with more rights is copied under another id, with its transcript, so that it is taken for a lost thread. No row is made of the copy and nothing of it runs.
func TestAttackCopiedThread(t *testing.T) {
	t.Parallel()
	s := newSignedScene(t)
	root := s.start("idle", "")
	id := s.ended(root)
	queued := s.meta(id)
	queued.Status, queued.Outcome, queued.Transcript = thread.Created, nil, nil
	s.noError(os.CopyFS(string(s.folder("work-9")), os.DirFS(string(s.folder(id)))))
	s.noError(s.folder("work-8").Make())
	s.noError(s.folder("work-8").WriteMeta(queued, homeOf(s.c).Seal)) // says it is another thread
	r := s.mended(s.later(), true)
	for _, copied := range []thread.ID{"work-8", "work-9"} {
		if !slices.ContainsFunc(r.Findings, func(f health.Finding) bool { return f.ThreadID == copied && f.Kind == "meta_copied" && !f.Mended }) {
			s.Errorf("%s is not told: %+v", copied, r.Findings)
		}
		if _, err := s.c.Threads.Store.Get(s.ctx, copied); err == nil {
			s.Errorf("%s has a row", copied)
		}
		if _, err := os.Stat(s.folder(copied).Meta()); err != nil {
			s.Error(err)
		}
	}
}

// TestAttackRunAgain: the folder of a thread that was queued once is put back after its row was deleted, so that mending starts it again. It comes back as a thread that was cancelled, and does not run.
func TestAttackRunAgain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	root := s.start("idle", "")
	id := s.ended(root)
	meta := s.meta(id)
	meta.Status, meta.Outcome, meta.Transcript = thread.Created, nil, nil
	s.sql(`DELETE FROM threads WHERE thread_id = ?`, id)
	s.sqlOf("budget_ledger.db", `DELETE FROM budgets WHERE thread_id = ?`, id)
	s.noError(s.folder(id).WriteMeta(meta, homeOf(s.c).Seal))
	s.noError(os.Remove(s.folder(id).Transcript()))
	server := s.later()
	s.mended(server, true)
	s.noError(server.Queue.Dispatch(s.ctx))
	if rec := s.row(id); rec.Status != thread.Cancelled || rec.PID != 0 {
		s.Errorf("it is %s, process %d", rec.Status, rec.PID)
	}
}

// TestAttackEditedRow: a row is edited by hand so that a thread seems to have failed, cost nothing and belong to a directive outside of its folder. Mending brings it to what the thread has signed, and writes nothing at the other place.
func TestAttackEditedRow(t *testing.T) {
	t.Parallel()
	s := newSignedScene(t)
	root := s.start("idle", "")
	id := s.ended(root)
	before := s.row(id)
	s.sql(`UPDATE threads SET spend = 0, status = 'error', directive = '../../../directives/evil', `+asEdited+` WHERE thread_id = ?`, id)
	r := s.mended(s.later(), false)
	if !r.Success || r.Mended == 0 {
		s.Errorf("mended %+v", r)
	}
	if now := s.row(id); now.Status != before.Status || now.Cost != before.Cost || now.Directive != before.Directive {
		s.Errorf("it is %+v", now)
	}
	if found, err := filepath.Glob(filepath.Join(s.project, ".ai", "directives", "evil*")); err != nil || len(found) > 0 {
		s.Errorf("written: %q, %v", found, err)
	}
	s.wantTreeSpend(root, 7)
}

func (s *scene) wantTreeSpend(root thread.ID, want thread.Micros) {
	s.Helper()
	if _, tree, err := s.c.Threads.Store.Tree(s.ctx, root); err != nil || tree.Actual != want {
		s.Errorf("the tree has spent %s, %v", tree.Actual, err)
	}
}

// TestAttackRenderingLink: the rendering of a thread is replaced by a link to a file of the user, and its folder by another. Mending replaces the first with a file and follows neither.
func TestAttackRenderingLink(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	root := s.start("idle", "")
	id := s.ended(root)
	precious := filepath.Join(s.project, "precious.md")
	s.noError(os.WriteFile(precious, []byte("mine"), 0o600))
	rendering := s.rendering(id)
	s.noError(os.Remove(rendering))
	s.noError(os.Symlink(precious, rendering))
	s.mended(s.later(), false)
	if info, err := os.Lstat(rendering); err != nil || !info.Mode().IsRegular() || s.read(precious) != "mine" {
		s.Errorf("%v, %v; the file says %q", info, err, s.read(precious))
	}
	elsewhere := s.TempDir()
	dir := filepath.Dir(rendering)
	s.noError(os.RemoveAll(dir))
	s.noError(os.Symlink(elsewhere, dir))
	s.mended(s.later(), false)
	if found, err := os.ReadDir(elsewhere); err != nil || len(found) > 0 {
		s.Errorf("written elsewhere: %v, %v", found, err)
	}
}

// TestAttackThreadMends: a model in a thread calls reconcile_threads with apply to change the records of threads. It is refused, and told what it may call.
func TestAttackThreadMends(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s, self, _, _ := attackScene(t)
	call := func(parameters string) (any, error) {
		return s.asModel(self, fmt.Sprintf(`{"item_id":%q,"parameters":{"operation":"reconcile_threads"%s}}`, action.OrchestratorID, parameters))
	}
	if _, err := call(`,"apply":true`); err == nil || !strings.Contains(err.Error(), "does not mend") {
		s.Errorf("it was answered with %v", err)
	}
	if _, err := call(""); err != nil {
		s.Errorf("a look: %v", err)
	}
}
