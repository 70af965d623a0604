package loop

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// children are the threads that this one has started by calls of its model, of whose end
// that has not been told. The tool calls of a turn change them at the same time.
type children struct {
	mu  sync.Mutex
	ids []thread.ID // as they were started
}

func (c *children) add(id thread.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.ids, id) {
		c.ids = append(c.ids, id)
	}
}

func (c *children) list() []thread.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ids)
}

// remove takes some of them out and returns which were among them.
func (c *children) remove(ids ...thread.ID) (removed []thread.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = slices.DeleteFunc(c.ids, func(id thread.ID) bool {
		ended := slices.Contains(ids, id)
		if ended {
			removed = append(removed, id)
		}
		return ended
	})
	return removed
}

// endsIn are the children whose end a result tells of: the model need not be told again.
func (c *children) endsIn(result any) []thread.ID {
	teller, is := result.(interface{ Tells() []thread.Told })
	if !is || len(c.list()) == 0 {
		return nil
	}
	var ended []thread.ID
	for _, told := range teller.Tells() {
		if told.Status.Terminal() && told.Status != thread.Continued {
			ended = append(ended, told.ThreadID)
		}
	}
	return c.remove(ended...)
}

// tellEnds tells the model in a line each which of its children have ended, unless a
// result has. An end that was told stands in the transcript, and nobody is told again.
func (r reader) tellEnds(ctx context.Context) error {
	waiting := r.children.list()
	if len(waiting) == 0 || !r.Settings.Notes.Ends {
		return nil
	}
	ended, err := r.Store.Ended(ctx, waiting)
	if err != nil {
		return err
	}
	for _, end := range ended {
		r.children.remove(end.Asked)
		if err := r.told(transcript.Message{
			Kind: thread.Happened, From: thread.Sender{Kind: thread.ByRye}, Ended: end.Asked,
			Blocks: llm.Text(llm.User, r.endText(end.Asked, end.Record)).Blocks,
		}); err != nil {
			return err
		}
	}
	return nil
}

func (r reader) endText(id thread.ID, rec thread.Record) string {
	text := fmt.Sprintf("[Thread %s (%s), which you have started, is %s after %s and %s.", id, rec.Directive, rec.Status, thread.TurnsText(rec.Cost.Turns), rec.Cost.Spend)
	if r.allow(permission.Required(permission.Execute, item.Tool, action.OrchestratorID)) == nil {
		text += " wait_threads with its id gives what came of it."
	}
	return text + "]"
}
