package main_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

const farProject = `
-- .ai/config/agent/resilience.yaml --
on_limit: {action: ask, deadline_seconds: 300}
-- .ai/directives/greet.md --
` + "```xml" + `
<directive name="greet" version="1.0.0"><metadata><model tier="fast" /><limits spend="0.10" /></metadata></directive>
` + "```" + `

Say hello.
-- .ai/directives/stay.md --
` + "```xml" + `
<directive name="stay" version="1.0.0">
  <metadata>
    <model tier="fast" /><limits spend="0.10" />
    <permissions><execute><tool>rye.file-system.ls</tool></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Look around and stay.
-- .ai/directives/loop.md --
` + "```xml" + `
<directive name="loop" version="1.0.0">
  <metadata>
    <model tier="fast" /><limits turns="1" spend="0.10" />
    <permissions><execute><tool>rye.file-system.ls</tool></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Go on and on.
-- .ai/directives/parent.md --
` + "```xml" + `
<directive name="parent" version="1.0.0">
  <metadata>
    <model tier="fast" /><limits spend="0.50" spawns="2" />
    <permissions><execute><directive>greet</directive><tool>rye/agent/threads/orchestrator</tool></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Have it said twice.
-- model.yaml --
turns:
  - {match: {last: Turn round}, text: I have turned.}
  - {match: {last: Once more}, text: Hello once more.}
  - {match: {last: another way}, text: I went another way.}
  - {match: {last: This is your last turn}, text: What I have.}
  - {match: {first: Say hello}, text: Hello there.}
  - match: {first: Look around, turn: 1}
    text: I look first.
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
  - match: {first: Go on and on}
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
  - match: {first: said twice, turn: 1}
    tool_calls:
      - {name: rye_execute, input: {item_type: directive, item_id: greet, async: true}}
      - {name: rye_execute, input: {item_type: directive, item_id: greet, async: true}}
  - match: {first: said twice, turn: 2}
    tool_calls:
      - name: rye_execute
        input_json: |
          {"item_type": "tool", "item_id": "rye/agent/threads/orchestrator",
           "parameters": {"operation": "wait_threads", "thread_ids": {{ results "thread_id" | toJSON }}}}
  - match: {first: said twice}
    text: It was said twice.
  - hang: true
`

// far is a fleet whose threads run on a machine that nobody sits at.
type far struct {
	*place          // where the editor is, with an MCP server
	editor   *host  // which
	terminal *place // where the commands are called
	worker   *place // where the threads run
	newest   thread.ID
}

// start starts a directive in the editor.
func (f *far) start(directive string) thread.ID {
	f.Helper()
	f.newest = must[view.Started](f.editor, "rye_execute", args{"item_id": directive, "async": true}).ThreadID
	return f.newest
}

// status is how a thread stands, as the editor is told. It runs on the worker.
func (f *far) status(id thread.ID) view.Status {
	f.Helper()
	status := must[view.Status](f.editor, "get_status", args{"thread_id": id})
	if status.Worker != "builder" {
		f.Errorf("worker of %s: %q", id, status.Worker)
	}
	return status
}

// there calls a command in the terminal.
func (f *far) there(arguments ...string) string {
	f.Helper()
	out, err := f.terminal.rye(nil, arguments...)
	if err != nil {
		f.Fatalf("there: rye-mcp %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return out
}

// thereAs decodes what a command of the terminal writes as JSON.
func thereAs[T any](f *far, arguments ...string) (answer T) {
	f.Helper()
	out := f.there(append(arguments, "--json")...)
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		f.Fatalf("%v: %v\n%s", arguments, err, out)
	}
	return answer
}

// want reports what a text lacks.
func (f *far) want(what, text string, words ...string) {
	f.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			f.Errorf("%s lacks %q:\n%s", what, word, text)
		}
	}
}

// says waits until a thread has told something, as it is read in the editor.
func (f *far) says(id thread.ID, text string) {
	f.Helper()
	f.until(func() (bool, string) {
		page := must[view.TranscriptPage](f.editor, "read_transcript", args{"thread_id": id})
		return strings.Contains(page.Content, text), "it has not said " + text + ":\n" + page.Content
	})
}

// gone waits until no process of a thread is on the worker's machine.
func (f *far) gone(id thread.ID) {
	f.Helper()
	f.until(func() (bool, string) {
		left, err := processesIn(f.worker.dir)
		f.noError(err)
		left = slices.DeleteFunc(left, func(p string) bool { return !strings.Contains(p, string(id)) })
		return len(left) == 0, strings.Join(left, "\n")
	})
}

// TestEverythingFromAnywhere does with threads of a worker what can be done with threads,
// from two machines that have nothing in common with it but the server and the key: an
// editor and a terminal. Each step is looked at from the other one.
func TestEverythingFromAnywhere(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f := &far{place: newTeam(t, farProject)}
	f.terminal, f.worker = f.clone("terminal"), f.clone("builder", "ANTHROPIC_API_KEY="+testKey)
	f.worker.work("builder")
	f.editor = f.serve()
	for _, step := range []struct {
		name string
		do   func(*far)
	}{
		{"start, wait, show", (*far).startAndWait},
		{"tail, steer, wait from both", (*far).tailAndSteer},
		{"ask, approve", (*far).askAndApprove},
		{"cancel", (*far).cancelThere},
		{"kill", (*far).killHere},
		{"resume, search the chain", (*far).resumeAndSearch},
		{"fork", (*far).forkBoth},
		{"children", (*far).startParent},
		{"delete", (*far).deleteThere},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			f.reportTo(t)
			step.do(f)
		}) {
			break
		}
	}
	f.reportTo(t)
}

// reportTo has what goes wrong told to a test.
func (f *far) reportTo(t *testing.T) { f.TB, f.terminal.TB, f.worker.TB = t, t, t }

func (f *far) startAndWait() {
	id := f.start("greet")
	f.want("the wait there", f.there("threads", "wait", string(id)), "completed")
	f.want("what is shown there", f.there("threads", "show", string(id)), "completed", "Hello there.", "worker      builder")
	f.want("what is read there", f.there("threads", "tail", string(id)), "Hello there.")
	f.want("the list there", f.there("threads", "list", "--json"), string(id), `"worker": "builder"`)
	f.want("the check there", f.there("threads", "verify", string(id)), "verified")
	if status := f.status(id); status.Status != thread.Completed {
		f.Errorf("here it is %s", status.Status)
	}
}

// tailAndSteer follows a thread from one machine while it works, tells it something from
// there, and has both machines wait for its end.
func (f *far) tailAndSteer() {
	id := f.start("stay")
	var told lockedBuffer
	tail := exec.Command(f.program, "threads", "tail", "--follow", string(id))
	tail.Dir, tail.Env, tail.Stdout = f.terminal.dir, f.terminal.env, &told
	f.noError(tail.Start())
	f.until(func() (bool, string) {
		return strings.Contains(told.String(), "rye_file_system_ls"), "the tail there says\n" + told.String()
	})
	f.says(id, "I look first.")
	f.wantCalls(2)
	waited := make(chan view.WaitResult, 1)
	go func() {
		result, _ := answered[view.WaitResult](f.editor, "wait_threads", args{"thread_ids": []thread.ID{id}})
		waited <- result
	}()
	f.there("threads", "steer", string(id), "--interrupt", "Turn round.")
	f.want("the wait there", f.there("threads", "wait", string(id)), "completed")
	if here := <-waited; here.Results[id].Result != "I have turned." {
		f.Errorf("the wait here: %+v", here)
	}
	if err := tail.Wait(); err != nil || !strings.Contains(told.String(), "I have turned.") {
		f.Errorf("the tail there ends with %v:\n%s", err, told.String())
	}
	f.status(id)
}

func (f *far) askAndApprove() {
	id := f.start("loop")
	asks := func(about string) {
		f.Helper()
		f.until(func() (bool, string) {
			open := f.there("threads", "approve")
			return strings.Contains(open, string(id)) && strings.Contains(f.there("threads", "approve", string(id)), about), "there it says\n" + open
		})
	}
	asks("turns: 1 of 1")
	if here := must[view.WaitResult](f.editor, "wait_threads", args{"thread_ids": []thread.ID{id}}); len(here.Waiting) != 1 {
		f.Errorf("the wait here does not tell that it asks: %+v", here)
	}
	f.there("threads", "approve", string(id), "--raise", "turns=2")
	asks("turns: 2 of 2")
	must[control.Approved](f.editor, "approve_thread", args{"thread_id": id, "decision": "finish"})
	f.want("the wait there", f.there("threads", "wait", string(id)), "completed")
	f.want("what is shown there", f.there("threads", "show", string(id)), "What I have.")
}

func (f *far) cancelThere() {
	id := f.start("stay")
	f.says(id, "I look first.")
	f.want("the cancel there", f.there("threads", "cancel", string(id), "--json"), `"status": "cancelled"`, `"worker": "builder"`)
	f.gone(id)
	if status := f.status(id); status.Status != thread.Cancelled {
		f.Errorf("cancelled there, here it is %s", status.Status)
	}
}

func (f *far) killHere() {
	id := f.start("stay")
	f.says(id, "I look first.")
	killed := must[stop.Stopped](f.editor, "kill_thread", args{"thread_id": id})
	if !killed.Success || len(killed.Receipts) != 1 || killed.Receipts[0].Worker != "builder" {
		f.Errorf("killed here: %+v", killed)
	}
	f.gone(id)
	f.want("the list there", f.there("threads", "show", string(id)), "cancelled")
}

func (f *far) resumeAndSearch() {
	id := f.start("greet")
	f.there("threads", "wait", string(id))
	f.want("resumed there", f.there("threads", "resume", string(id), "Once more."), "Hello once more.")
	chain := must[view.Chain](f.editor, "get_chain", args{"thread_id": id})
	if chain.Length != 2 || chain.ResolvedThreadID == "" {
		f.Fatalf("here the chain is %+v", chain)
	}
	f.status(chain.ResolvedThreadID)
	found := must[view.ChainMatches](f.editor, "chain_search", args{"thread_id": id, "query": "hello once"})
	if found.Count == 0 || len(found.Searched) != 2 {
		f.Errorf("found here: %+v", found)
	}
	f.want("found there", f.there("threads", "chain", string(id), "--search", "hello once"), "Hello once more.")
	f.newest = id
}

// forkBoth copies the chain of the step before, from either machine.
func (f *far) forkBoth() {
	id := f.newest
	here := must[continuation.Forked](f.editor, "fork_thread", args{"thread_id": id, "message": "Go another way."})
	f.want("the wait there", f.there("threads", "wait", string(here.ThreadID)), "completed")
	f.want("the copy there", f.there("threads", "tail", string(here.ThreadID)), "Hello there.", "I went another way.")
	f.status(here.ThreadID)
	there := thereAs[continuation.Forked](f, "threads", "fork", string(id))
	f.says(there.ThreadID, "Hello there.")
}

func (f *far) startParent() {
	f.want("run there", f.there("run", "parent"), "It was said twice.")
	list := must[view.List](f.editor, "list_threads", args{"directive_id": "parent"})
	if list.Count != 1 {
		f.Fatalf("here there are %+v", list)
	}
	children := must[view.List](f.editor, "list_threads", args{"parent_id": list.Threads[0].ThreadID})
	if children.Count != 2 {
		f.Errorf("its children here: %+v", children)
	}
	for _, child := range children.Threads {
		if f.status(child.ThreadID).Status != thread.Completed {
			f.Errorf("child %+v", child)
		}
	}
}

func (f *far) deleteThere() {
	id := f.start("greet")
	f.there("threads", "wait", string(id))
	f.there("threads", "delete", "--yes", string(id))
	if status, err := ask[view.Status](f.editor, "get_status", args{"thread_id": id}); err == nil {
		f.Errorf("deleted there, here it is %+v", status)
	}
	for _, at := range []*place{f.terminal, f.worker} {
		if out, err := at.rye(nil, "threads", "tail", string(id)); err == nil || strings.Contains(out, "Hello there.") {
			f.Errorf("deleted, in %s it says\n%s", at.dir, out)
		}
	}
}
