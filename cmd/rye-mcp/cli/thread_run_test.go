package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// TestThreadLog: every line of a thread's log names the thread and the request
// that it goes back to.
func TestThreadLog(t *testing.T) {
	t.Parallel()
	const id = thread.ID("test/task-1")
	for name, traceID := range map[string]string{"traced": "req-7", "not traced": ""} {
		home := folder.Home{Dir: t.TempDir(), Seal: placetest.NewSeal(t)}
		dir := home.Of(id)
		if err := dir.Make(); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		log := threadLog(System{Stderr: &out, Getenv: func(string) string { return "" }}, dir, id, traceID, secret.New(map[string]string{"token": "never to be seen"}))
		log.Info().Msg("hello, never to be seen")
		var line map[string]string
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%s: %s: %v", name, out.String(), err)
		}
		if line["message"] != "hello, {secret:token}" {
			t.Errorf("the log says %q", line["message"])
		}
		if _, there := line["trace_id"]; line["thread_id"] != string(id) || line["trace_id"] != traceID || there != (traceID != "") {
			t.Errorf("%s: %v", name, line)
		}
	}
}

// A thread's process has no command but its own, and every other process has all.
func TestRootOfThread(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"thread": spawn.Args("/project", "d-1"), "": nil, "run": {"run", "thread"}} {
		commands := rootFor(System{}, args).Commands()
		if alone := len(commands) == 1 && commands[0].Name() == threadCommand; alone != (name == threadCommand) {
			t.Errorf("%q: %d commands", args, len(commands))
		}
	}
}
