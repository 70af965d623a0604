package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/changeset"
	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestWorkspaceOfACommitThatLacks: a worker whose checkout lacks the commit that a workspace
// builds upon leaves the thread, and status says what to do, until it has fetched that.
func TestWorkspaceOfACommitThatLacks(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	here := newTeam(t, sharers)
	behind := here.clone("behind", "ANTHROPIC_API_KEY="+testKey)
	stranger := here.clone("stranger", "ANTHROPIC_API_KEY="+testKey) // a checkout of another history
	for _, arguments := range [][]string{
		{"checkout", "-q", "--orphan", "other"}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "o"},
		{"update-ref", "-d", "refs/remotes/origin/HEAD"}, {"update-ref", "-d", "refs/remotes/origin/master"}, {"branch", "-D", "master"},
		{"reflog", "expire", "--expire=now", "--all"}, {"gc", "-q", "--prune=now"},
	} {
		stranger.git(arguments...)
	}
	here.write("later.txt", []byte("later\n"))
	here.git("add", "later.txt")
	here.git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "b")
	here.git("update-ref", "refs/remotes/origin/main", "HEAD") // as after a push
	behind.work("behind")
	stranger.work("stranger")
	h := here.serve()
	id := must[view.Started](h, "rye_execute", args{"item_id": "child", "async": true, "workspace": "worktree"}).ThreadID
	here.until(func() (bool, string) {
		status := must[view.Status](h, "get_status", args{"thread_id": id})
		said := status.NoWorker
		return status.Queued && strings.Contains(said, "builds upon commit") && strings.Contains(said, "(behind, stranger): git fetch"), "it is " + string(status.Status) + ": " + said
	})
	behind.git("fetch", "-q", here.dir, "HEAD")
	ended := must[view.WaitResult](h, "wait_threads", args{"thread_ids": []thread.ID{id}}).Results[id]
	status := must[view.Status](h, "get_status", args{"thread_id": id})
	if ended.Result != "It saw nothing." || ended.Changes.Count() != 1 || status.Worker != "behind" || status.NoWorker != "" {
		t.Errorf("with the commit it ends as %+v on %q, %q", ended, status.Worker, status.NoWorker)
	}
}

// TestWorkspaceOfTheKilled: the workspace that a killed thread has left comes from the worker
// that sees it; that of a killed worker is told to be there, and comes with that worker. Until
// then nobody else goes on without it.
func TestWorkspaceOfTheKilled(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	here := newTeam(t, sharers)
	one, two := here.clone("one", "ANTHROPIC_API_KEY="+testKey), here.clone("two", "ANTHROPIC_API_KEY="+testKey)
	t.Cleanup(func() { _ = os.WriteFile(filepath.Join(one.home(), "go"), nil, 0o600) }) // ends what its tool waits in
	worker := one.workWith("one", "--slots", "1")
	h := here.serve()
	calls := 0
	start := func() (id thread.ID, pid int) {
		t.Helper()
		id = must[view.Started](h, "rye_execute", args{"item_id": "parent", "async": true}).ThreadID
		calls += 3
		here.wantCalls(calls)
		here.noError(here.rows().QueryRow(t.Context(), `SELECT pid FROM threads WHERE thread_id = $1`, string(id)).Scan(&pid))
		return id, pid
	}
	killed, pid := start()
	here.noError(syscall.Kill(pid, syscall.SIGKILL))
	must[view.WaitResult](h, "wait_threads", args{"thread_ids": []thread.ID{killed}})
	here.shows(h, killed, 1, "+of the parent")

	lost, pid := start()
	two.work("two")
	here.noError(worker.Process.Kill())
	here.noError(syscall.Kill(pid, syscall.SIGKILL))
	must[view.WaitResult](h, "wait_threads", args{"thread_ids": []thread.ID{lost}})
	if _, err := ask[changeset.Shown](h, "diff_thread", args{"thread_id": lost}); err == nil || !strings.Contains(err.Error(), "on worker one") {
		t.Errorf("that of a killed worker is shown as %v", err)
	}
	resumed := must[continuation.Resumed](h, "resume_thread", args{"thread_id": lost, "message": "Look again."})
	if said := resumed.NewThreadResult.Next; !strings.Contains(said, "is on one alone, where no worker takes threads") {
		t.Errorf("resumed without that worker it says %q", said)
	}
	one.workWith("one again", "--slots", "1")
	ended := must[view.WaitResult](h, "wait_threads", args{"thread_ids": []thread.ID{resumed.NewThreadID}}).Results[resumed.NewThreadID]
	if ended.Result != "It saw what the parent has written." || ended.Changes.Count() != 2 {
		t.Errorf("with it again it says %q, with changes %+v\n%s", ended.Result, ended.Changes, here.mustCLI(here.dir, "threads", "tail", string(resumed.NewThreadID)))
	}
}
