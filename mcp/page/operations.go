package page

import (
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
)

// unfit are operations that a page does not need: it waits by looking, and notes are
// from threads to threads.
var unfit = []string{operation.WaitThreads.Name, operation.SendNote.Name}

// offered are the names of the operations that a page may call.
func offered(t *operation.Table) []string {
	return slices.DeleteFunc(t.Names(), func(name string) bool { return slices.Contains(unfit, name) })
}
