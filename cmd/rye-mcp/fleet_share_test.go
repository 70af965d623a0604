package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/changeset"
	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// sharers is a project of a thread with a workspace, and a child that works in it. Each looks
// and writes by one command; the parent stays until a file is there.
const sharers = `
-- .ai/directives/parent.md --
` + "```xml" + `
<directive name="parent" version="1.0.0">
  <metadata><model tier="fast" /><limits spend="0.50" spawns="2" /><workspace type="worktree" />
  <permissions><execute><directive>child</directive><tool>rye.bash</tool><tool>rye/agent/threads/orchestrator</tool></execute><acknowledge risk="elevated">A test</acknowledge></permissions></metadata>
</directive>
` + "```" + `

Have it done.
-- .ai/directives/child.md --
` + "```xml" + `
<directive name="child" version="1.0.0">
  <metadata><model tier="fast" /><limits spend="0.10" />
  <permissions><execute><tool>rye.bash</tool></execute><acknowledge risk="elevated">A test</acknowledge></permissions></metadata>
</directive>
` + "```" + `

Do it.
-- .ai/directives/greet.md --
` + "```xml" + `
<directive name="greet" version="1.0.0"><metadata><model tier="fast" /><limits spend="0.10" /></metadata></directive>
` + "```" + `

Say hello.
-- kept.txt --
committed
-- model.yaml --
turns:
  - {match: {first: Say hello}, text: Hello there.}
  - match: {last: Look again}
    tool_calls: [{name: rye_execute, input: {item_type: tool, item_id: rye/bash, parameters: {command: "echo again; cat parent.txt; echo more >>more.txt"}}}]
  - match: {last: cancelled}
    tool_calls: [{name: rye_execute, input: {item_type: tool, item_id: rye/bash, parameters: {command: "echo again; cat parent.txt; echo more >>more.txt"}}}]
  - match: {last: of the parent}
    text: It saw what the parent has written.
  - match: {last: No such file}
    text: It saw nothing.
  - match: {first: Do it, turn: 1}
    tool_calls: [{name: rye_execute, input: {item_type: tool, item_id: rye/bash, parameters: {command: "cat parent.txt; echo of the child >child.txt"}}}]
  - match: {first: Have it done, turn: 1}
    tool_calls: [{name: rye_execute, input: {item_type: tool, item_id: rye/bash, parameters: {command: "echo of the parent >parent.txt; echo written"}}}]
  - match: {first: Have it done, turn: 2}
    tool_calls: [{name: rye_execute, input: {item_type: directive, item_id: child, async: true}}]
  - match: {first: Have it done, turn: 3}
    tool_calls: [{name: rye_execute, input: {item_type: tool, item_id: rye/bash, parameters: {command: "until [ -e \"$HOME/go\" ]; do sleep 0.05; done"}}}]
  - match: {first: Have it done, turn: 4}
    tool_calls:
      - name: rye_execute
        input_json: |
          {"item_type": "tool", "item_id": "rye/agent/threads/orchestrator",
           "parameters": {"operation": "wait_threads", "thread_ids": {{ results "thread_id" | toJSON }}}}
  - match: {first: Have it done}
    text: It is done.
`

// childOf waits for the child of a thread.
func (p *place) childOf(h *host, id thread.ID) (child thread.ID) {
	p.Helper()
	p.until(func() (bool, string) {
		children := must[view.List](h, "list_threads", args{"parent_id": id})
		if children.Count == 1 {
			child = children.Threads[0].ThreadID
		}
		return child != "", "it has no child:\n" + p.mustCLI(p.dir, "threads", "tail", string(id))
	})
	return child
}

// TestSharedWorkspaceStaysThere: a thread that works in its parent's workspace is run by the
// worker that has that, though another has slots free; a change that it makes after its parent has
// ended is shown and applied elsewhere all the same.
func TestSharedWorkspaceStaysThere(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	here := newTeam(t, sharers)
	one, two := here.clone("one", "ANTHROPIC_API_KEY="+testKey), here.clone("two", "ANTHROPIC_API_KEY="+testKey)
	one.workWith("one", "--slots", "1")
	h := here.serve()
	parent := must[view.Started](h, "rye_execute", args{"item_id": "parent", "async": true}).ThreadID
	child := here.childOf(h, parent)
	two.work("two")
	canary := must[view.Started](h, "rye_execute", args{"item_id": "greet", "async": true}).ThreadID
	must[view.WaitResult](h, "wait_threads", args{"thread_ids": []thread.ID{canary}})
	if status := must[view.Status](h, "get_status", args{"thread_id": canary}); status.Worker != "two" {
		t.Fatalf("what needs no workspace ran on %q", status.Worker)
	}
	if status := must[view.Status](h, "get_status", args{"thread_id": child}); !status.Queued || status.NoWorker != "" {
		t.Fatalf("the child is %+v", status)
	}
	if _, err := ask[changeset.Shown](h, "diff_thread", args{"thread_id": parent}); err == nil || !strings.Contains(err.Error(), "on worker one") {
		t.Errorf("while it works there it is shown as %v", err)
	}
	early := must[continuation.Forked](h, "fork_thread", args{"thread_id": parent, "message": "Look again."}).ThreadID
	if status := must[view.Status](h, "get_status", args{"thread_id": early}); !status.Queued || status.NoWorker != "" {
		t.Errorf("the copy of what still works there is %+v", status)
	}
	here.noError(exec.Command("touch", filepath.Join(one.home(), "go")).Run())
	results := must[view.WaitResult](h, "wait_threads", args{"thread_ids": []thread.ID{parent, child}}).Results
	if got := results[child].Result; got != "It saw what the parent has written." {
		t.Errorf("the child says %q\n%s", got, here.mustCLI(here.dir, "threads", "tail", string(child)))
	}
	if status := must[view.Status](h, "get_status", args{"thread_id": child}); status.Worker != "one" {
		t.Errorf("the child ran on %q", status.Worker)
	}
	if got := must[view.WaitResult](h, "wait_threads", args{"thread_ids": []thread.ID{early}}).Results[early].Result; got != "It saw what the parent has written." {
		t.Errorf("the copy of what still worked there says %q\n%s", got, here.mustCLI(here.dir, "threads", "tail", string(early)))
	}
	if status := must[view.Status](h, "get_status", args{"thread_id": early}); status.Worker != "one" {
		t.Errorf("the copy of what still worked there ran on %q", status.Worker)
	}
	here.shows(h, parent, 2, "+of the child")
	resumed := must[continuation.Resumed](h, "resume_thread", args{"thread_id": child, "message": "Look again."})
	must[view.WaitResult](h, "wait_threads", args{"thread_ids": []thread.ID{resumed.NewThreadID}})
	here.shows(h, parent, 3, "+more")
	third := here.clone("third")
	if said := third.mustCLI(third.dir, "threads", "diff", string(child), "--stat"); !strings.Contains(said, "A child.txt") {
		t.Errorf("on a third machine it is shown as\n%s", said)
	}
	forked := must[continuation.Forked](h, "fork_thread", args{"thread_id": parent, "message": "Look again."})
	ended := must[view.WaitResult](h, "wait_threads", args{"thread_ids": []thread.ID{forked.ThreadID}}).Results[forked.ThreadID]
	if ended.Result != "It saw what the parent has written." || ended.Changes.Count() != 3 {
		t.Errorf("the copy says %q, with changes %+v", ended.Result, ended.Changes)
	}
	must[changeset.Applied](h, "apply_thread", args{"thread_id": parent})
	for _, copied := range []thread.ID{early, forked.ThreadID} {
		here.mustCLI(here.dir, "threads", "delete", "--yes", "--force", string(copied))
	}
	if one.workspacesOf(parent, forked.ThreadID) == 0 {
		t.Error("no workspace is there any more before it was told")
	}
	for _, machine := range []*place{one, two} {
		machine.work(filepath.Base(filepath.Dir(machine.dir)) + " more") // which looks at once
		here.until(func() (bool, string) {
			left := machine.workspacesOf(parent, forked.ThreadID)
			return left == 0, fmt.Sprintf("%s has %d workspaces of what was applied or deleted elsewhere", machine.dir, left)
		})
	}
	if said := here.mustCLI(here.dir, "threads", "verify", string(parent)); !strings.Contains(said, "verified") {
		t.Errorf("its thread.json says\n%s", said)
	}
}

// workspacesOf is how many workspaces of some threads are on this machine.
func (p *place) workspacesOf(ids ...thread.ID) (count int) {
	p.Helper()
	found, err := filepath.Glob(filepath.Join(p.home(), ".ai", "workspaces", "*", "*", "workspace.json"))
	p.noError(err)
	for _, file := range found {
		about, err := os.ReadFile(file)
		if err == nil && slices.ContainsFunc(ids, func(id thread.ID) bool { return strings.Contains(string(about), `"`+string(id)+`"`) }) {
			count++
		}
	}
	return count
}

// shows waits until so many new files of a thread are shown, with a text.
func (p *place) shows(h *host, id thread.ID, added int, text string) {
	p.Helper()
	p.until(func() (bool, string) {
		shown, err := ask[changeset.Shown](h, "diff_thread", args{"thread_id": id})
		if err != nil {
			return false, err.Error()
		}
		return shown.Added == added && strings.Contains(shown.Text, text), "it is shown as " + shown.Text
	})
}
