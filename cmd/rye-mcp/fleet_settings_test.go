package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestSettingsOfTheStart: a worker whose user has accepted other settings of the project than
// the starter's leaves the thread, and it is told why; one with the same takes it. A
// setting that only stands in a checkout makes no difference.
func TestSettingsOfTheStart(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	here := newTeam(t, greeting+`
-- .ai/config/agent/resilience.yaml --
on_limit: {action: ask}
`)
	other := here.clone("other", "ANTHROPIC_API_KEY="+testKey)
	other.write(".ai/config/agent/resilience.yaml", []byte("on_limit: {action: stop}\n"))
	other.work("other")
	h := here.serve()
	started := must[view.Started](h, "rye_execute", args{"item_id": "greet", "async": true})
	if !started.Queued || !strings.Contains(started.Next, "(other) have accepted other settings of it than were accepted where the thread was started") {
		t.Errorf("with a worker of other settings it says\n%+v", started)
	}
	same := here.clone("same", "ANTHROPIC_API_KEY="+testKey)
	file := filepath.Join(same.dir, ".ai", "config", "agent", "coordination.yaml") // which nobody has accepted
	same.noError(os.WriteFile(file, []byte("continuation: {trigger_threshold: 0.5}\n"), 0o600))
	same.work("same")
	must[view.WaitResult](h, "wait_threads", args{"thread_ids": []string{string(started.ThreadID)}})
	if status := must[view.Status](h, "get_status", args{"thread_id": started.ThreadID}); status.Worker != "same" || status.NoWorker != "" {
		t.Errorf("with one of the same settings it is\n%+v", status)
	}
}
