package scheduler

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// CheckSlot refuses a thread with secrets while others are queued or as many
// threads run as may. A thread in the queue may be started by any process of the
// project, and its secrets are in the memory of this one only.
func (c *Call) CheckSlot(ctx context.Context, secrets map[string]string) error {
	if len(secrets) == 0 {
		return nil
	}
	c.DispatchAndLog(ctx, true, nil) // who has a slot may be dead
	load, err := c.Threads.Store.QueueLoad(ctx)
	if err != nil {
		return threads.Fault(err)
	}
	if load.Queued > 0 || load.Occupied >= c.Slots() {
		return errNoSlot()
	}
	return nil
}

// errNoSlot is the refusal of a thread that would have to be queued.
func errNoSlot() *tool.Fault {
	return tool.Faultf(tool.CodeUnsupported,
		"others are queued, or as many threads run as may at the same time, and a thread with secret inputs cannot wait for its turn: their values are kept in no file").
		WithHint("start it again when another thread has ended (list_active), or ask the person to raise threads.max_running")
}
