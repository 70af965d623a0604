package scheduler

import (
	"context"
	"fmt"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// CheckSlot refuses a thread with secrets while others are queued or as many
// threads run as may. A thread in the queue may be started by any process of the
// project, and its secrets are in the memory of this one only.
func (c *Call) CheckSlot(ctx context.Context, secrets map[string]string) error {
	if len(secrets) == 0 {
		return nil
	}
	c.DispatchAndLog(ctx, true, nil) // threads that have a slot may be dead
	load, err := c.Threads.Store.QueueLoad(ctx)
	if err != nil {
		return threads.Fault(err)
	}
	if load.Queued > 0 || load.Occupied >= c.Slots() {
		return c.noSlot(ctx)
	}
	return nil
}

// noSlot is the refusal of a thread that would have to be queued. It says what keeps the slots or
// the queue.
func (c *Call) noSlot(ctx context.Context) *tool.Fault {
	why, next := c.whatKeeps(ctx)
	return tool.Faultf(tool.CodeUnsupported, "%s, and a thread with secret inputs cannot wait for its turn: their values are kept in no file", why).WithHint("%s", next)
}

// whatKeeps says why there is no slot for a thread that comes now, and what to do.
func (c *Call) whatKeeps(ctx context.Context) (why, next string) {
	const full = "start it again when another thread has ended (list_active), or ask the person to raise threads.max_running"
	load, err := c.Threads.Store.QueueLoad(ctx)
	if slots := c.Slots(); err != nil || load.Queued == 0 || load.Occupied >= slots {
		return fmt.Sprintf("as many threads run as may at the same time (%d)", slots), full
	}
	why = fmt.Sprintf("%d queued before it", load.Queued)
	const empty = "start it again when the queue is empty (list_active); what nobody needs any more can be cancelled"
	first, _, err := c.Threads.Store.Next(ctx, c.Slots(), store.QueuePlace{})
	if err != nil || first.ThreadID == "" {
		return why, empty
	}
	why += fmt.Sprintf(" (first %s)", first.ThreadID)
	if waits := c.Threads.NoWorker(ctx, first); waits != "" {
		return why, "tell the person: " + waits + ". Then " + empty
	}
	return why, empty
}
