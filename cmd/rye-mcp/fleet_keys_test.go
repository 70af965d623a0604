package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// greeting is a project whose one directive greets.
const greeting = `
-- .ai/directives/greet.md --
` + "```xml" + `
<directive name="greet" version="1.0.0"><metadata><model tier="fast" /><limits spend="0.10" /></metadata></directive>
` + "```" + `

Say hello.
-- model.yaml --
turns:
  - match: {last: Once more}
    text: Hello again.
  - match: {first: Say hello}
    text: Hello there.
`

// TestKeysAreTheWorkers: a machine without a key for a model provider starts threads all the
// same where a worker takes them, and is told when none of the workers has the key. Where
// it would run them itself it is refused. A provider that only the starting machine has
// settings of is left for a worker that has them, too: one that gets them while it works, and
// where it is one on the worker's machine, while that answers.
func TestKeysAreTheWorkers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	here := newTeam(t, greeting)
	here.provider("own", here.model.url, "")
	refused := func(when string) {
		t.Helper()
		out, err := here.cli(here.dir, nil, "run", "greet")
		if err == nil || !strings.Contains(out, "ANTHROPIC_API_KEY") || !strings.Contains(out, "rye-mcp worker --project DIR") {
			t.Errorf("%s, without a key, it says %v:\n%s", when, err, out)
		}
		if listed := here.mustCLI(here.dir, "threads", "list"); !strings.Contains(listed, "no threads") {
			t.Errorf("%s what was refused has left\n%s", when, listed)
		}
	}
	refused("without workers")

	here.clone("keyless").work("keyless")
	h := here.serve()
	left := must[view.Started](h, "rye_execute", args{"item_id": "greet", "async": true, "model": "own/m"})
	started := must[view.Started](h, "rye_execute", args{"item_id": "greet", "async": true})
	if want := "no worker of project git.example/team/app can use model provider anthropic (keyless): start one that has its settings and key"; !started.Queued || !strings.Contains(started.Next, want) {
		t.Errorf("with a worker that has no key either it says\n%+v", started)
	}
	waited := must[view.WaitResult](h, "wait_threads", args{"thread_ids": []string{string(started.ThreadID)}, "timeout": 0.1})
	if want := "can use model provider anthropic (keyless)"; !strings.Contains(waited.Next, want) {
		t.Errorf("who waits for it is told %q", waited.Next)
	}
	able := here.clone("able", "ANTHROPIC_API_KEY="+testKey)
	able.provider("own", "http://127.0.0.1:1", local) // where nothing listens
	able.work("able")
	ended := must[view.WaitResult](h, "wait_threads", args{"thread_ids": []string{string(started.ThreadID)}})
	if ended.Results[started.ThreadID].Result != "Hello there." {
		t.Errorf("with one that has it there is\n%+v", ended)
	}
	if said, _ := here.cli(here.dir, nil, "doctor"); !strings.Contains(said, "which workers of the project can use") { // its exit code is about all it finds
		t.Errorf("with a worker that has the key the doctor says\n%s", said)
	}
	resumed := must[continuation.Resumed](h, "resume_thread", args{"thread_id": started.ThreadID, "message": "Once more."})
	must[view.WaitResult](h, "wait_threads", args{"thread_ids": []string{string(resumed.NewThreadID)}})
	status := must[view.Status](h, "get_status", args{"thread_id": resumed.NewThreadID})
	if status.Worker != "able" || status.LastText != "Hello again." {
		t.Errorf("resumed without a key here it is\n%+v", status)
	}
	status = must[view.Status](h, "get_status", args{"thread_id": left.ThreadID})
	if want := "can use model provider own (able, keyless)"; !status.Queued || !strings.Contains(status.NoWorker, want) {
		t.Errorf("with a provider that no worker has settings of, or that does not answer there, it is\n%+v", status)
	}
	able.provider("own", here.model.url, local)
	ended = must[view.WaitResult](h, "wait_threads", args{"thread_ids": []string{string(left.ThreadID)}})
	if status = must[view.Status](h, "get_status", args{"thread_id": left.ThreadID}); status.Worker != "able" || status.LastText != "Hello there." {
		t.Errorf("when it answers at a worker it is\n%+v\n%+v", status, ended)
	}
}

// local says of a provider that it runs on the machine.
const local = "local: true\n"

// provider gives a machine the settings of a provider.
func (p *place) provider(name, url, more string) {
	p.Helper()
	file := filepath.Join(p.home(), ".ai", "config", "agent", "providers", name+".yaml")
	p.noError(os.MkdirAll(filepath.Dir(file), 0o700))
	p.noError(os.WriteFile(file, []byte("api: anthropic\nbase_url: "+url+"\nallow_unpriced: true\ntiers: {fast: m}\n"+more), 0o600))
}
