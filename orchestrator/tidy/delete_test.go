package tidy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestDelete deletes a chain with what is below it. All of it goes, nothing else does,
// and what it has spent stays in the sums.
func TestDelete(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.running("work/root", "")
	other := s.ended("work/one", root)
	first := s.running("work/one", root)
	below := s.ended("work/below", first)
	s.end(first, thread.Completed, 7)
	second := s.begin(store.NewThread{Directive: "work/one", ParentID: root, ContinuationOf: first})
	s.end(second, thread.Error, 5)
	s.wantWhole(other, first, below, second)
	s.wantSpent(root, 26, 26)

	shown, err := s.t.Delete(s.ctx, tidy.DeleteRequest{ThreadID: second, DryRun: true})
	s.noError(err)
	if all := []thread.ID{first, below, second}; !shown.DryRun || shown.Threads != 3 || !same(shown.ThreadIDs, all) ||
		shown.Bytes < 3000 || shown.Spend != 19 || !strings.Contains(shown.Next, "confirm: true") {
		t.Errorf("shown %+v", shown)
	}
	s.wantWhole(other, first, below, second)
	told := s.delete(second)
	if !told.Success || told.DryRun || told.Threads != 3 || told.Left != 0 || len(told.Kept) > 0 {
		t.Errorf("told %+v", told)
	}
	s.wantGone(first, below, second)
	s.wantWhole(other)
	s.wantSpent(root, 26, 26)
	again := s.delete(first)
	if !again.Success || again.DeletedAt == "" {
		t.Errorf("again: %+v", again)
	}
	if _, err := s.t.Delete(s.ctx, tidy.DeleteRequest{ThreadID: "never-1", Agreed: true}); codeOf(err) != tool.CodeNotFound {
		t.Errorf("one that never was: %v", err)
	}
	s.end(root, thread.Completed, 1)
	s.wantSpent(root, 27, 27)
	s.delete(root)
	s.wantGone(root, other)
}

func codeOf(err error) tool.Code {
	if f, ok := errors.AsType[*tool.Fault](err); ok {
		return f.Code
	}
	return ""
}

// TestConfirm: the threads that were shown go. A confirm without a dry run, of another
// caller, after an hour, or for more than was shown, deletes nothing and shows it.
func TestConfirm(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.running("root", "")
	id := s.running("one", root)
	s.ended("below", id)
	s.end(id, thread.Completed, 1)
	ask := func(req tidy.DeleteRequest) tidy.Deleted {
		t.Helper()
		req.ThreadID = id
		told, err := s.t.Delete(s.ctx, req)
		s.noError(err)
		return told
	}
	refused := func(what string, told tidy.Deleted) {
		t.Helper()
		if !told.DryRun || !strings.Contains(told.Next, "nothing was deleted") || told.Threads == 0 {
			t.Errorf("%s: %+v", what, told)
		}
		s.wantWhole(id)
	}
	refused("never shown", ask(tidy.DeleteRequest{Confirm: true, By: "a"}))
	refused("shown to another", ask(tidy.DeleteRequest{Confirm: true, By: "b"}))
	refused("shown without force", ask(tidy.DeleteRequest{Confirm: true, Force: true, By: "a"}))
	s.now = s.now.Add(2 * time.Hour)
	refused("shown long ago", ask(tidy.DeleteRequest{Confirm: true, By: "a"}))
	n := store.NewThread{Directive: "late", ParentID: id, ParentEnded: true}
	n.Kind, n.Model, n.Now, n.MaxSpawns, n.Run = thread.KindDirective, "m", s.now, 10, thread.NewRun()
	late, _, err := store.Register(s.ctx, s.store, n, nil)
	s.noError(err)
	_, err = s.any().Apply(s.ctx, store.Claimed(late.ThreadID, thread.Process{PID: 1, Host: "elsewhere"}, s.now))
	s.noError(err)
	s.noError(s.t.Threads.Records.Of(late.ThreadID).Prepare())
	s.end(late.ThreadID, thread.Completed, 1)
	refused("one has come since", ask(tidy.DeleteRequest{Confirm: true, By: "a"}))
	if told := ask(tidy.DeleteRequest{By: "a"}); !told.DryRun {
		t.Errorf("without a word: %+v", told)
	}
	if told := ask(tidy.DeleteRequest{Agreed: true, Digest: "other"}); !told.DryRun {
		t.Errorf("agreed to something else: %+v", told)
	}
	if told := ask(tidy.DeleteRequest{Confirm: true, By: "a"}); told.DryRun || told.Threads != 3 {
		t.Errorf("confirmed: %+v", told)
	}
	s.wantGone(id, late.ThreadID)
}

// TestDeleteLiving: nothing that lives goes, nor what it is below of.
func TestDeleteLiving(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	top := s.running("top", "")
	child := s.running("child", top)
	hold, err := s.t.Threads.Life.Claim(lifeOf(s, child))
	s.noError(err)
	defer func() { s.noError(hold.Release()) }()
	s.end(top, thread.Completed, 1)
	for _, id := range []thread.ID{top, child} {
		_, err := s.t.Delete(s.ctx, tidy.DeleteRequest{ThreadID: id, Agreed: true})
		if codeOf(err) != tool.CodeConflict || !strings.Contains(err.Error(), string(child)+" is running") {
			t.Errorf("%s: %v", id, err)
		}
	}
	shown, err := s.t.Delete(s.ctx, tidy.DeleteRequest{ThreadID: top, DryRun: true})
	s.noError(err)
	if !same(shown.Living, []thread.ID{child}) || !strings.Contains(shown.Next, "force") {
		t.Errorf("shown %+v", shown)
	}
	s.wantWhole(top)
}

// TestBelongings go with their thread, and one that speaks against it keeps it.
func TestBelongings(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.ended("one", "")
	why, fails := "it has changes that nobody applied", errors.New("it cannot be removed")
	var removed []thread.ID
	s.t.Belongings = append(s.t.Belongings, tidy.Belonging{
		Name: "the workspace",
		Remove: func(_ ctx, rec thread.Record) error {
			if fails != nil {
				return fails
			}
			removed = append(removed, rec.ThreadID)
			return nil
		},
		Blocks: func(ctx, thread.Record) string { return why },
	}, tidy.Belonging{Name: "nothing", Remove: func(ctx, thread.Record) error { return nil }})
	_, err := s.t.Delete(s.ctx, tidy.DeleteRequest{ThreadID: id, Agreed: true})
	if codeOf(err) != tool.CodeConflict || !strings.Contains(err.Error(), why) {
		t.Errorf("blocked: %v", err)
	}
	shown, err := s.t.Delete(s.ctx, tidy.DeleteRequest{ThreadID: id, DryRun: true})
	s.noError(err)
	if !strings.Contains(shown.Blocked, why) {
		t.Errorf("shown %+v", shown)
	}
	told, err := s.t.Delete(s.ctx, tidy.DeleteRequest{ThreadID: id, Agreed: true, Force: true})
	s.noError(err)
	if told.Left != 1 || len(told.Kept) != 1 || !strings.Contains(told.Kept[0], "the workspace") {
		t.Errorf("what stays is told: %+v", told)
	}
	fails = nil
	did, done, err := s.t.Sweep(s.ctx)
	s.noError(err)
	if !done || len(did) != 1 || !same(removed, []thread.ID{id}) {
		t.Errorf("the sweep did %q, removed %v", did, removed)
	}
	s.wantGone(id)
}

// TestAttackDeleteOthers: a model has its thread delete others, its parent or itself. It
// can delete its own descendants alone.
func TestAttackDeleteOthers(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.running("root", "")
	me := s.running("me", root)
	sibling, mine, stranger := s.ended("sibling", root), s.ended("mine", me), s.ended("stranger", "")
	// A person has resumed what this thread had started, for itself.
	resumed := s.begin(store.NewThread{Directive: "mine", ContinuationOf: s.ended("mine", me)})
	s.end(resumed, thread.Completed, 1)
	for _, id := range []thread.ID{root, me, sibling, stranger, resumed} {
		for _, req := range []tidy.DeleteRequest{{DryRun: true}, {Confirm: true}, {Confirm: true, Force: true}, {Agreed: true, Force: true}} {
			req.ThreadID, req.From = id, me
			if told, err := s.t.Delete(s.ctx, req); codeOf(err) != tool.CodePermissionDenied {
				t.Errorf("%+v: %+v, %v", req, told, err)
			}
		}
	}
	s.wantWhole(sibling, stranger, resumed)
	for range 2 {
		_, err := s.t.Delete(s.ctx, tidy.DeleteRequest{ThreadID: mine, From: me, Confirm: true})
		s.noError(err)
	}
	s.wantGone(mine)
}

// TestAttackLinkedRemains: links to files outside stand in the place of the folder, the
// artifacts and the rendering of a thread that is deleted. The links go, and what they
// name stays.
func TestAttackLinkedRemains(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, link := range map[string]func(s *scene, id thread.ID, outside string) string{
		"folder":    func(s *scene, id thread.ID, _ string) string { return s.folder(id) },
		"above":     func(s *scene, id thread.ID, _ string) string { return filepath.Dir(s.folder(id)) },
		"artifacts": func(s *scene, id thread.ID, _ string) string { return filepath.Join(s.folder(id), "artifacts") },
		"artifact":  func(s *scene, id thread.ID, _ string) string { return filepath.Join(s.folder(id), "artifacts", "x") },
		"inside":    func(s *scene, id thread.ID, _ string) string { return filepath.Join(s.folder(id), "more") },
		"rendering": func(s *scene, id thread.ID, _ string) string { return s.rendering(id) },
		"knowledge": func(s *scene, id thread.ID, _ string) string { return filepath.Dir(s.rendering(id)) },
		"knowledge above": func(s *scene, id thread.ID, _ string) string {
			return filepath.Join(s.project, ".ai", "knowledge", "agent")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			id := s.ended("work/one", "")
			outside := t.TempDir()
			precious := []string{}
			for _, file := range []string{
				"thread.json", filepath.Base(s.folder(id)) + "/thread.json", filepath.Base(s.rendering(id)), "threads/work/one/" + filepath.Base(s.rendering(id)),
			} {
				path := filepath.Join(outside, file)
				s.noError(os.MkdirAll(filepath.Dir(path), 0o700))
				s.noError(os.WriteFile(path, []byte("```yaml\nthread_id: "+string(id)+"\n```\n"), 0o600))
				precious = append(precious, path)
			}
			at := link(s, id, outside)
			s.noError(os.RemoveAll(at))
			s.noError(os.Symlink(outside, at))
			if told := s.delete(id); told.Left != 0 {
				t.Errorf("told %+v", told)
			}
			for _, path := range precious {
				if _, err := os.Stat(path); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.store.Get(s.ctx, id); err == nil {
				t.Error("the row is there")
			}
		})
	}
}

// TestAttackHostileID: ids that lead out of the state are to be deleted. They name no
// thread, and no file is touched.
func TestAttackHostileID(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.ended("one", "")
	precious := filepath.Join(s.project, "precious")
	s.noError(os.WriteFile(precious, []byte("x"), 0o600))
	for _, id := range []thread.ID{"../../../precious", "/", ".", "..", "", "a/../../../../precious", "one\x00", thread.ID(strings.Repeat("a", 10_000)), "' OR 1=1 --", "%"} {
		if told, err := s.t.Delete(s.ctx, tidy.DeleteRequest{ThreadID: id, Agreed: true, Force: true}); codeOf(err) != tool.CodeNotFound {
			t.Errorf("%.20q: %+v, %v", id, told, err)
		}
		if err := s.t.Threads.Records.Of(id).Whole().Remove(); err == nil && id != "' OR 1=1 --" && id != "%" {
			t.Errorf("records of %.20q were removed", id)
		}
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// TestNestedFolders: the id of a thread can begin with that of another. The folder of
// one goes, and that of the other, which is in it, stays.
func TestNestedFolders(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	outer := s.ended("one", "")
	inner := s.ended(string(outer)+"/deep", "")
	s.noError(os.MkdirAll(filepath.Join(s.folder(outer), "scratch", "x"), 0o700))
	s.delete(outer)
	s.wantWhole(inner)
	entries, err := os.ReadDir(s.folder(outer))
	s.noError(err)
	if len(entries) != 1 {
		t.Errorf("left in the outer folder: %v", entries)
	}
	s.delete(inner)
	s.wantGone(inner)
}

// TestOwnFiles: a file that a person has put in the place of a rendering stays.
func TestOwnFiles(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.ended("one", "")
	s.noError(os.WriteFile(s.rendering(id), []byte("# My notes\n"), 0o600))
	s.delete(id)
	if _, err := os.Stat(s.rendering(id)); err != nil {
		t.Error(err)
	}
}
