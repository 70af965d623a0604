package control

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// Variables that tell a process of the test binary what to be.
const (
	socketVar = "RYE_TEST_SOCKET" // where a thread's process takes its orders
	pointVar  = "RYE_TEST_POINT"  // the step after which a server is to die
)

// OfOperations offers a controller and the operations to the primary actions, as
// the program does.
var OfOperations func(*Controller) action.Threads

// unfinished are the threads that have not ended.
var unfinished = view.ListRequest{States: []thread.State{thread.Created, thread.Running}}

// TestMain makes the test binary a thread's process, or a server that dies,
// when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		role, play := os.Args[1], map[string]func([]string) error{
			"thread": playThread, "actor": playActor, "tool": playTool,
		}
		if run, ok := play[role]; ok {
			if err := run(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, "Error:", err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}
