package operation_test

import (
	"encoding/json"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
)

// Every operation that is about threads says which, under each name that it takes for them.
func TestNamedThreads(t *testing.T) {
	t.Parallel()
	more := map[string]string{
		"resume_thread": `"message":"on",`, "steer_thread": `"message":"on",`, "approve_thread": `"decision":"stop",`, "rename_thread": `"name":"a",`,
		"chain_search": `"query":"a",`, "fork_thread": `"message":"on",`, "send_note": `"message":"on",`,
	}
	for _, e := range operation.All().Entries() {
		if !e.NamesThreads {
			continue
		}
		decode := e.Decoder(func() (json.RawMessage, error) { return e.Input() })
		for _, name := range []string{"thread_id", "thread_ids", "id"} {
			call, err := decode(json.RawMessage(`{` + more[e.Name] + `"` + name + `":["a-1"]}`))
			if err != nil || len(call.Threads) != 1 || call.Threads[0] != "a-1" {
				t.Errorf("%s, %s: %v, %v", e.Name, name, call.Threads, err)
			}
		}
	}
}
