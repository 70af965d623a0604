package control

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestTwentyChildren starts children of one parent in one second, from two
// servers at once.
func TestTwentyChildren(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const children = 20
	s := newScene(t)
	root := s.start("idle", "")
	servers := []*Controller{s.c, s.controller()}
	ids := make([]thread.ID, children)
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			started, err := servers[i%2].Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Parent: root})
			if err != nil {
				s.Error(err)
			}
			ids[i] = started.ThreadID
		})
	}
	group.Wait()
	seen := map[thread.ID]bool{}
	for _, id := range ids {
		seen[id] = true
		if held, err := s.c.Threads.Life.Held(life.Key{Thread: id}); err != nil || !held {
			s.Errorf("the lock of %s is held: %t, %v", id, held, err)
		}
	}
	for n := 1; n <= children; n++ {
		if id := thread.NewID("work", testTime, n); !seen[id] {
			s.Errorf("nobody has got %s", id)
		}
	}
	s.wantTree(root, store.TreeSpend{Reserved: children * 10_000, Threads: children + 1, Active: children + 1})
	stopped, err := s.c.Stop.Cancel(s.ctx, root)
	if err != nil || !stopped.Success || len(stopped.Receipts) != children+1 {
		s.Errorf("stopped %+v, %v", stopped, err)
	}
	s.wantTree(root, store.TreeSpend{Threads: children + 1})
}

// TestRequestKey repeats starts: at the same moment, after what they need is
// gone, and after a start that failed.
func TestRequestKey(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	req := action.StartRequest{Directive: "work", Parent: root, RequestKey: "k"}
	var group sync.WaitGroup
	answers := make([]view.Started, 6)
	servers := []*Controller{s.c, s.controller()}
	for i := range answers {
		group.Go(func() {
			var err error
			if answers[i], err = servers[i%2].Start(s.ctx, action.Caller{}, req); err != nil {
				s.Error(err)
			}
		})
	}
	group.Wait()
	made := 0
	for _, a := range answers {
		if a.ThreadID != firstChild {
			s.Errorf("answer %+v", a)
		}
		if !a.Existing {
			made++
		}
	}
	if made != 1 || s.row(root).SpawnCount != 1 {
		s.Errorf("%d starts, %d counted", made, s.row(root).SpawnCount)
	}
	s.order(firstChild, "claim", "complete")
	s.order(root, "complete")
	s.noError(os.Remove(filepath.Join(s.project, ".ai", "directives", "work.md")))
	again, err := s.c.Start(s.ctx, action.Caller{}, req)
	if err != nil || !again.Existing || !again.Success || again.Result != "result of "+string(firstChild) {
		s.Errorf("started again: %+v, %v", again, err)
	}
	if _, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "idle", RequestKey: "k"}); code(err) != tool.CodeRequestKeyReused {
		s.Errorf("the key for other work: %v", err)
	}
}

func TestFailedStart(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	s.c.Queue.Launcher.(*spawn.Launcher).Executable = filepath.Join(s.project, "missing")
	req := action.StartRequest{Directive: "work", Parent: root, RequestKey: "k"}
	if _, err := s.c.Start(s.ctx, action.Caller{}, req); err == nil {
		s.Fatal("started a program that does not exist")
	}
	s.wantState(thread.Error, firstChild)
	s.wantTree(root, store.TreeSpend{Threads: 2, Active: 1})
	if held, err := s.c.Threads.Life.Held(life.Key{Thread: firstChild}); err != nil || held {
		s.Errorf("the lock is held: %t, %v", held, err)
	}
	again, err := s.c.Start(s.ctx, action.Caller{}, req)
	if err != nil || again.Success || again.Problem == nil || again.Next == "" {
		s.Errorf("repeated: %+v, %v", again, err)
	}
}

// TestRefusals lets nothing be registered that a caller has got wrong.
func TestRefusals(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	ended := s.start("idle", root)
	s.order(ended, "complete")
	for name, tt := range map[string]struct {
		req  action.StartRequest
		code tool.Code
	}{
		"directive": {action.StartRequest{Directive: "missing"}, tool.CodeNotFound},
		"input":     {action.StartRequest{Directive: "work", Inputs: map[string]any{"x": 1}}, tool.CodeInvalidInputs},
		"limit":     {action.StartRequest{Directive: "work", Limits: item.LimitSet{"luck": 1}}, tool.CodeInvalidLimits},
		"amount":    {action.StartRequest{Directive: "work", Limits: item.LimitSet{"turns": -1}}, tool.CodeInvalidLimits},
		"no parent": {action.StartRequest{Directive: "work", Parent: "no/such"}, tool.CodeParentGone},
		"ended":     {action.StartRequest{Directive: "work", Parent: ended}, tool.CodeParentGone},
		"hostile":   {action.StartRequest{Directive: "work", Parent: "../../x"}, tool.CodeParentGone},
	} {
		if _, err := s.c.Start(s.ctx, action.Caller{}, tt.req); code(err) != tt.code {
			s.Errorf("%s: %v", name, err)
		}
	}
	if list, err := s.c.View.List(s.ctx, view.ListRequest{}); err != nil || list.Count != 2 {
		s.Errorf("registered %+v, %v", list, err)
	}
	asked := action.StartRequest{Directive: "idle", Parent: root, Limits: item.LimitSet{"spend": 0.5}}
	s.order(root, "spend 995000")
	if _, err := s.c.Start(s.ctx, action.Caller{}, asked); code(err) != tool.CodeBudgetExhausted {
		s.Errorf("more than is left: %v", err)
	}
	list, err := s.c.View.List(s.ctx, view.ListRequest{States: []thread.State{thread.Error}})
	s.noError(err)
	for _, refused := range list.Threads { // described like others, so that it is not lost with the registry
		if meta, err := s.folder(refused.ThreadID).ReadMeta(s.c.Threads.Records.Seal()); err != nil || meta.Status != thread.Error {
			s.Errorf("thread.json %+v, %v", meta, err)
		}
	}
	if list.Count == 0 {
		s.Error("a start that found no money left is not listed")
	}
	// A limit that nobody has asked for shrinks to what is left.
	started, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "idle", Parent: root})
	s.noError(err)
	if b, err := s.c.Threads.Store.Budget(s.ctx, started.ThreadID); err != nil || b.MaxSpend != 5000 {
		s.Errorf("budget %+v, %v", b, err)
	}
}

// TestParentMustBeAllowed refuses a child that its parent may not start, however
// the parent was named, and lets the older capability serve.
func TestParentMustBeAllowed(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("directives/meek.md", fmt.Sprintf(directive, "meek", "", "<directive>idle</directive>"))
	s.write("directives/older.md", fmt.Sprintf(directive, "older", "", "<tool>rye.agent.threads.thread_directive</tool>"))
	meek, older := s.start("meek", ""), s.start("older", "")
	_, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Parent: meek})
	if code(err) != tool.CodePermissionDenied || !strings.Contains(err.Error(), "rye.execute.directive.work") {
		s.Errorf("not allowed: %v", err)
	}
	s.c.Threads.Parent = meek // as RYE_PARENT_THREAD_ID sets it for what a tool of the thread runs
	if _, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work"}); code(err) != tool.CodePermissionDenied {
		s.Errorf("not allowed, by the environment: %v", err)
	}
	if n := s.row(meek).SpawnCount; n != 0 {
		s.Errorf("%d spawns counted", n)
	}
	for parent, directive := range map[thread.ID]string{meek: "idle", older: "work"} {
		if _, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: directive, Parent: parent}); err != nil {
			s.Errorf("%s below %s: %v", directive, parent, err)
		}
	}
}

// TestParentIsVerified: a child takes nothing from a thread.json
// that is unsigned, changed, or another thread's.
func TestParentIsVerified(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	unsigned := s.start("idle", "")
	mighty, meek := s.start("idle", ""), s.start("idle", "")
	read := func(id thread.ID) []byte {
		data, err := os.ReadFile(s.folder(id).Meta())
		s.noError(err)
		return data
	}
	own := read(meek)
	start := func(parent thread.ID, meta []byte) error {
		s.noError(os.WriteFile(s.folder(parent).Meta(), meta, 0o600))
		_, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Parent: parent})
		return err
	}
	for name, err := range map[string]error{
		"unsigned":       start(unsigned, []byte(strings.Replace(string(read(unsigned)), `"_signature"`, `"signature"`, 1))),
		"changed":        start(meek, []byte(strings.Replace(string(own), `"spawns":`, `"spawns":9`, 1))),
		"another's":      start(meek, read(mighty)),
		"cut":            start(meek, own[:len(own)/2]),
		"no JSON at all": start(meek, nil),
	} {
		if code(err) != tool.CodeParentGone {
			s.Errorf("%s: %v", name, err)
		}
	}
	if err := start(meek, own); err != nil {
		s.Errorf("its own: %v", err)
	}
}

// TestKeysOfThreads: two threads may choose the same key, and a thread cannot
// choose another parent than itself.
func TestKeysOfThreads(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	var children []thread.ID
	for range 2 {
		parent := s.start("idle", "")
		caller := action.Caller{InThread: true, Env: tool.Env{ThreadID: parent}}
		for range 2 {
			got, err := Threads{s.c}.Start(s.ctx, caller, action.StartRequest{
				Directive: "work", Async: true, RequestKey: "step-1", Parent: "no/such",
			})
			s.noError(err)
			children = append(children, got.(view.Started).ThreadID)
		}
		if got := s.row(children[len(children)-1]).ParentID; got != parent {
			s.Errorf("the parent is %s", got)
		}
	}
	if children[0] != children[1] || children[2] != children[3] || children[0] == children[2] {
		s.Errorf("started %v", children)
	}
}
