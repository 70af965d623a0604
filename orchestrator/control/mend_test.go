package control

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// asEdited is what a hand that edits the registry must set as well, lest the trigger
// refuses it that holds off older versions.
const asEdited = "writes = writes + 1"

// damage is one way to make registry, ledger and folders disagree about a thread that has
// ended, as copies, backups, crashes and hands do.
type damage struct {
	name string
	kind string
	of   thread.ID // that the finding names; empty: the thread
	do   func(s *scene, id thread.ID)
	// left says that apply does nothing about it.
	left bool
	gone bool // there is no row of it afterwards
	// after is checked when it was mended, beside the row, which is as it was.
	after func(s *scene, id thread.ID)
}

var damages = []damage{
	{name: "row deleted", kind: "row_missing", do: func(s *scene, id thread.ID) {
		s.sql(`DELETE FROM threads WHERE thread_id = ?`, id)
		s.sqlOf("budget_ledger.db", `DELETE FROM budgets WHERE thread_id = ?`, id)
	}},
	{name: "row deleted, budget restored by a crashed apply", kind: "row_missing", do: func(s *scene, id thread.ID) {
		s.sql(`DELETE FROM threads WHERE thread_id = ?`, id)
	}},
	{name: "row of an older backup", kind: "row_behind", do: func(s *scene, id thread.ID) {
		s.sql(`UPDATE threads SET status = 'created', completed_at = NULL, result = NULL, pid = 0, admitted_at = NULL, `+asEdited+` WHERE thread_id = ?`, id)
	}},
	{name: "spend lowered, status changed", kind: "row_edited", do: func(s *scene, id thread.ID) {
		s.sql(`UPDATE threads SET spend = 0, status = 'error', directive = '../../../directives/x', `+asEdited+` WHERE thread_id = ?`, id)
	}},
	{name: "result changed", kind: "row_edited", do: func(s *scene, id thread.ID) {
		s.sql(`UPDATE threads SET result = json_set(result, '$.result', 'all tests pass') WHERE thread_id = ?`, id)
	}},
	{name: "row and transcript changed", kind: "meta_disagrees", left: true, do: func(s *scene, id thread.ID) {
		s.sql(`UPDATE threads SET result = json_set(result, '$.result', 'all tests pass') WHERE thread_id = ?`, id)
		s.edit(s.folder(id).Transcript(), "result of", "RESULT OF")
	}},
	{name: "folder removed", kind: "folder_missing", do: func(s *scene, id thread.ID) {
		s.noError(os.RemoveAll(string(s.folder(id))))
	}},
	{name: "folder back", kind: "folder_back", do: func(s *scene, id thread.ID) {
		_, err := s.c.Threads.Store.Mend().MarkGone(s.ctx, id, testTime)
		s.noError(err)
	}},
	{name: "link in place of the folder", kind: "folder_linked", left: true, do: func(s *scene, id thread.ID) {
		moved := filepath.Join(s.project, filepath.Base(string(id)))
		s.noError(os.Rename(string(s.folder(id)), moved))
		s.noError(os.Symlink(moved, string(s.folder(id))))
	}},
	{name: "thread.json removed", kind: "meta_missing", left: true, do: func(s *scene, id thread.ID) { s.noError(os.Remove(s.folder(id).Meta())) }},
	{name: "thread.json edited", kind: "meta_unreadable", left: true, do: func(s *scene, id thread.ID) {
		s.edit(s.folder(id).Meta(), `"turns":`, `"turns":9`)
	}},
	{name: "thread.json of another project", kind: "meta_foreign", left: true, do: func(s *scene, id thread.ID) {
		s.noError(s.folder(id).WriteMeta(s.meta(id), placetest.NewSeal(s)))
	}},
	{name: "folder copied under another id", kind: "meta_copied", of: "copy-1", left: true, do: func(s *scene, id thread.ID) {
		s.noError(os.CopyFS(string(s.folder("copy-1")), os.DirFS(string(s.folder(id)))))
	}},
	{name: "copy whose thread.json was edited to fit", kind: "meta_unreadable", of: "copy-2", left: true, do: func(s *scene, id thread.ID) {
		s.noError(os.CopyFS(string(s.folder("copy-2")), os.DirFS(string(s.folder(id)))))
		s.edit(s.folder("copy-2").Meta(), string(id), "copy-2")
	}},
	{name: "thread.json rolled back", kind: "meta_behind", do: func(s *scene, id thread.ID) {
		meta := s.meta(id)
		meta.Status, meta.Outcome, meta.Transcript = thread.Running, nil, nil
		s.noError(s.folder(id).WriteMeta(meta, homeOf(s.c).Seal))
	}},
	{name: "transcript cut off", kind: "transcript_damaged", left: true, do: func(s *scene, id thread.ID) { s.noError(os.Truncate(s.folder(id).Transcript(), 100)) }},
	{name: "transcript edited, row deleted", kind: "transcript_damaged", left: true, do: func(s *scene, id thread.ID) {
		s.sql(`DELETE FROM threads WHERE thread_id = ?`, id)
		s.edit(s.folder(id).Transcript(), "result of", "RESULT OF")
	}},
	{name: "parent that there is none of", kind: "parent_missing", do: func(s *scene, id thread.ID) {
		s.sql(`UPDATE threads SET parent_id = 'nobody-2' WHERE thread_id = ?`, id)
	}},
	{name: "parent of somebody else", kind: "parent_differs", do: func(s *scene, id thread.ID) {
		s.sql(`UPDATE threads SET parent_id = (SELECT max(thread_id) FROM threads WHERE thread_id <> ?1) WHERE thread_id = ?1`, id)
	}},
	{name: "continued by nobody", kind: "chain_broken", do: func(s *scene, id thread.ID) {
		s.sql(`UPDATE threads SET continuation_thread_id = 'nobody-3' WHERE thread_id = ?`, id)
	}},
	{name: "chain of somebody else", kind: "chain_broken", do: func(s *scene, id thread.ID) {
		s.sql(`UPDATE threads SET continuation_of = parent_id, chain_root_id = parent_id WHERE thread_id = ?`, id)
	}},
	{name: "budget without a thread", kind: "reservation_without_thread", of: "nobody-4", do: func(s *scene, _ thread.ID) {
		s.noError(s.c.Threads.Store.OpenRoot(s.ctx, "nobody-4", 5, testTime))
	}, after: func(s *scene, _ thread.ID) {
		if b, err := s.c.Threads.Store.Budget(s.ctx, "nobody-4"); err != nil || b.Active {
			s.Errorf("budget %+v, %v", b, err)
		}
	}},
	{name: "ledger of another time", kind: "reservation_without_thread", do: func(s *scene, id thread.ID) {
		s.sqlOf("budget_ledger.db", `UPDATE budgets SET status = 'active', own_spend = 1, actual_spend = 1 WHERE thread_id = ?`, id)
	}},
	{name: "budget deleted", kind: "budget_missing", do: func(s *scene, id thread.ID) {
		s.sqlOf("budget_ledger.db", `DELETE FROM budgets WHERE thread_id = ?`, id)
	}},
	{name: "budget deleted, thread.json edited", kind: "budget_missing", left: true, do: func(s *scene, id thread.ID) {
		s.sqlOf("budget_ledger.db", `DELETE FROM budgets WHERE thread_id = ?`, id)
		s.edit(s.folder(id).Meta(), `"turns":`, `"turns":9`)
	}},
	{name: "spend lowered in the ledger", kind: "budget_differs", do: func(s *scene, id thread.ID) {
		s.sqlOf("budget_ledger.db", `UPDATE budgets SET own_spend = 0 WHERE thread_id = ?`, id)
	}},
	{name: "totals edited", kind: "totals_wrong", do: func(s *scene, id thread.ID) {
		s.sqlOf("budget_ledger.db", `UPDATE budgets SET reserved_spend = 3 WHERE thread_id = ?`, id)
	}},
	{name: "rendering removed", kind: "rendering_stale", do: func(s *scene, id thread.ID) { s.noError(os.Remove(s.rendering(id))) }},
	{name: "rendering of another thread", kind: "rendering_stale", do: func(s *scene, id thread.ID) {
		s.edit(s.rendering(id), "thread_id: "+string(id), "thread_id: other-1")
	}},
	{name: "rendering replaced by a link", kind: "rendering_stale", do: func(s *scene, id thread.ID) {
		s.noError(os.Remove(s.rendering(id)))
		s.noError(os.Symlink(filepath.Join(s.project, ".ai", "config", "agent", "agent.yaml"), s.rendering(id)))
	}, after: func(s *scene, id thread.ID) {
		if text := s.read(filepath.Join(s.project, ".ai", "config", "agent", "agent.yaml")); strings.Contains(text, string(id)) {
			s.Error("it was written through the link")
		}
	}},
	{name: "draft", kind: "draft_left", of: "-", do: func(s *scene, id thread.ID) {
		draft := filepath.Join(filepath.Dir(s.rendering(id)), ".rye-ABC.tmp")
		s.noError(os.WriteFile(draft, []byte("half"), 0o600))
		s.noError(os.Chtimes(draft, testTime, testTime))
	}},
	{name: "artifact of a call that a crash cut short", kind: "artifact_orphan", do: func(s *scene, id thread.ID) {
		sum := sha256.Sum256([]byte("a long result"))
		_, err := s.folder(id).WriteArtifact(hex.EncodeToString(sum[:]), []byte("a long result"))
		s.noError(err)
	}},
	{name: "deleted thread that was put back", kind: "deleted_back", left: true, do: func(s *scene, id thread.ID) {
		kept := filepath.Join(s.project, "kept")
		s.noError(os.CopyFS(kept, os.DirFS(string(s.folder(id)))))
		s.remove(id)
		_, err := s.c.Tidy.Continue(s.ctx, nil)
		s.noError(err)
		s.noError(os.CopyFS(string(s.folder(id)), os.DirFS(kept)))
	}},
	{name: "deletion cut short", kind: "deletion_unfinished", gone: true, do: func(s *scene, id thread.ID) { s.remove(id) },
		after: func(s *scene, id thread.ID) {
			if _, err := os.Stat(string(s.folder(id))); !os.IsNotExist(err) {
				s.Errorf("its folder is there: %v", err)
			}
		}},
	{name: "lock left", kind: "lock_stale", do: func(s *scene, id thread.ID) {
		s.noError(os.WriteFile(s.folder(id).Lock(thread.NewRun()), nil, 0o600))
	}},
	{name: "leftover of a start", kind: "lock_stale", of: "leftover-1", do: func(s *scene, _ thread.ID) {
		s.noError(s.folder("leftover-1").Make())
		s.noError(os.WriteFile(s.folder("leftover-1").Lock(thread.NewRun()), nil, 0o600))
	}},
}

// remove takes the row of a thread away, as the first step of a deletion does.
func (s *scene) remove(id thread.ID) {
	s.Helper()
	refused, err := s.c.Threads.Store.Delete(s.ctx, [][]thread.ID{{id}}, testTime)
	s.noError(errors.Join(append(refused, err)...))
}

// edit changes something in a file.
func (s *scene) edit(path, from, to string) {
	s.Helper()
	text := s.read(path)
	if !strings.Contains(text, from) {
		s.Fatalf("there is no %q in %s", from, path)
	}
	s.noError(os.WriteFile(path, []byte(strings.Replace(text, from, to, 1)), 0o600))
}

// rendering is the path of the knowledge entry of a thread.
func (s *scene) rendering(id thread.ID) string {
	s.Helper()
	return finish.Rendering(finish.KnowledgeDir(s.project), s.row(id))
}

// victim is a damage and the thread that it is done to.
type victim struct {
	damage
	id     thread.ID
	before thread.Record
}

// suffer runs a thread to its end for each damage, and does them all.
func (s *scene) suffer(damages []damage) (root thread.ID, victims []victim) {
	s.Helper()
	for i, d := range damages {
		if i%10 == 0 {
			root = s.start("idle", "")
		}
		id := s.start("work", root)
		s.order(id, "say hello", "spend 7", "complete")
		<-s.puppet(id).gone
		victims = append(victims, victim{d, id, s.row(id)})
	}
	s.setSlots(1) // nothing that is queued by its row starts
	defer s.setSlots(40)
	for i := range victims {
		v := &victims[i]
		v.do(s, v.id)
		switch v.of {
		case "":
			v.of = v.id
		case "-":
			v.of = ""
		}
	}
	return root, victims
}

// finds is what a comparison must find.
func finds(victims []victim, which func(victim) bool) []string {
	var want []string
	for _, v := range victims {
		if which(v) {
			want = append(want, fmt.Sprintf("%s %s %t", v.of, v.kind, !v.left))
		}
	}
	return slices.Sorted(slices.Values(want))
}

// found is what a comparison has found that is, or was not, mended.
func found(findings []health.Finding, mended func(health.Finding) bool) []string {
	var got []string
	for _, f := range findings {
		got = append(got, fmt.Sprintf("%s %s %t", f.ThreadID, f.Kind, mended(f)))
	}
	return slices.Compact(slices.Sorted(slices.Values(got)))
}

// later is a server for which all that was made is old.
func (s *scene) later() *Controller {
	s.Helper()
	c := s.controller()
	c.Threads.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	c.Threads.Finisher.Now = c.Threads.Now
	return c
}

// TestReconcileApply makes every kind of disagreement. A comparison finds each, apply
// mends those that what is signed tells how to, and a repeat changes nothing.
func TestReconcileApply(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	stuck := s.start("idle", "")
	root, victims := s.suffer(damages)
	s.setSlots(1)
	s.c.Threads.LeaveChildren()
	s.noError(syscall.Kill(s.puppet(stuck).pid, syscall.SIGKILL))
	<-s.puppet(stuck).gone
	s.noError(os.Remove(s.folder(stuck).Transcript()))
	s.noError(os.Mkdir(s.folder(stuck).Transcript(), 0o700))
	victims = append(victims, victim{damage: damage{name: "stuck", kind: "process_missing", of: stuck, left: true}, id: stuck})

	all := health.ReconcileInput{All: true}
	server := s.later()
	r, err := server.Health.Reconcile(s.ctx, all, nil)
	s.noError(err)
	for _, v := range victims {
		if !slices.ContainsFunc(r.Findings, func(f health.Finding) bool { return f.ThreadID == v.of && f.Kind == v.kind }) {
			s.Errorf("%s: %s %s is not found", v.name, v.of, v.kind)
		}
	}
	all.Apply = true
	r, err = server.Health.Reconcile(s.ctx, all, nil)
	s.noError(err)
	for _, v := range victims {
		if !slices.ContainsFunc(r.Findings, func(f health.Finding) bool { return f.ThreadID == v.of && f.Kind == v.kind && f.Mended == !v.left }) {
			s.Errorf("%s: %s %s, mended %t, is not among %+v", v.name, v.of, v.kind, !v.left, r.Findings)
		}
	}
	r, err = server.Health.Reconcile(s.ctx, all, nil)
	s.noError(err)
	left := func(v victim) bool { return v.left }
	unmended := func(f health.Finding) bool { return f.Mended }
	want := strings.ReplaceAll(strings.Join(finds(victims, left), "\n"), " true", " false")
	if got := strings.Join(found(r.Findings, unmended), "\n"); !containsLines(got, want) || r.Mended != 0 {
		s.Errorf("left are\n%s\nwant\n%s", got, want)
	}
	s.wantMended(victims)
	if b, err := s.c.Threads.Store.Budget(s.ctx, root); err != nil || !b.Active || b.Reserved != 0 {
		s.Errorf("budget of the root %+v, %v", b, err)
	}
	for _, k := range health.Kinds() {
		if !slices.ContainsFunc(victims, func(v victim) bool { return v.kind == k.Name && v.left == (k.Mend == "") }) {
			s.Errorf("nothing shows what becomes of %s", k.Name)
		}
	}
}

// containsLines reports whether every line of some is in text.
func containsLines(text, some string) bool {
	lines := strings.Split(text, "\n")
	for line := range strings.SplitSeq(some, "\n") {
		if !slices.Contains(lines, line) {
			return false
		}
	}
	return true
}

// wantMended fails the test unless what was mended is as it was.
func (s *scene) wantMended(victims []victim) {
	s.Helper()
	for _, v := range victims {
		if v.gone && v.after != nil {
			v.after(s, v.id)
		}
		if v.left || v.gone {
			continue
		}
		now := s.row(v.id)
		if now.Status != v.before.Status || now.Cost != v.before.Cost || now.Directive != v.before.Directive ||
			now.Outcome.Result != v.before.Outcome.Result || store.RelativesOf(now) != store.RelativesOf(v.before) {
			s.Errorf("%s: the row is %+v, and was %+v", v.name, now, v.before)
		}
		if b, err := s.c.Threads.Store.Budget(s.ctx, v.id); err != nil || b.Active || b.Own != 7 || b.Reserved != 0 {
			s.Errorf("%s: budget %+v, %v", v.name, b, err)
		}
		if v.kind != "folder_missing" {
			if verdict := s.verify(v.id); !verdict.Verified {
				s.Errorf("%s: %+v", v.name, verdict)
			}
			if _, err := os.Stat(s.rendering(v.id)); err != nil {
				s.Errorf("%s: %v", v.name, err)
			}
		}
		if v.after != nil {
			v.after(s, v.id)
		}
	}
}

// mendable are the damages that apply mends.
func mendable() []damage {
	return slices.DeleteFunc(slices.Clone(damages), func(d damage) bool { return d.left })
}

// TestReconcileApplyAtOnce has two servers mend the same while threads start and end.
func TestReconcileApplyAtOnce(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	root, victims := s.suffer(slices.DeleteFunc(mendable(), func(d damage) bool { return d.kind == "row_behind" })) // it would start
	lives := s.start("work", root)
	servers := []*Controller{s.later(), s.later()}
	var group sync.WaitGroup
	errs := make([]error, len(servers))
	for i, c := range servers {
		group.Go(func() { _, errs[i] = c.Health.Reconcile(s.ctx, health.ReconcileInput{All: true, Apply: true}, nil) })
	}
	meanwhile := s.start("work", root)
	s.order(meanwhile, "spend 3", "complete")
	group.Wait()
	for _, err := range errs {
		s.noError(err)
	}
	s.wantMended(victims)
	s.order(lives, "spend 2", "complete")
	for _, id := range []thread.ID{lives, meanwhile} { // each writes a little behind its end
		<-s.puppet(id).gone
	}
	s.wantState(thread.Completed, lives, meanwhile)
	r, err := s.later().Health.Reconcile(s.ctx, health.ReconcileInput{All: true, Apply: true}, nil)
	if err != nil || len(r.Findings) != 0 || !r.Success {
		s.Errorf("afterwards %+v, %v", r, err)
	}
}

// TestReconcileApplyKilled kills a server behind each step of mending. The next one
// finishes.
func TestReconcileApplyKilled(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	var victims []victim
	for _, at := range health.Crashpoints() {
		_, kind, _ := strings.Cut(string(at), ".")
		if kind == "replaced" {
			kind = "row_behind"
		}
		_, more := s.suffer(slices.DeleteFunc(mendable(), func(d damage) bool { return d.kind != kind }))
		victims = append(victims, more...)
		s.setSlots(1)
		s.dieAfter(at, "reconcile", "")
		_, err := s.later().Health.Reconcile(s.ctx, health.ReconcileInput{All: true, Apply: true}, nil)
		s.noError(err)
		s.setSlots(40)
	}
	r, err := s.later().Health.Reconcile(s.ctx, health.ReconcileInput{All: true, Apply: true}, nil)
	s.noError(err)
	if !r.Success {
		s.Errorf("found %+v", r.Findings)
	}
	s.wantMended(victims)
}
