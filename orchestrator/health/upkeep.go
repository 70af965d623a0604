package health

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
)

// keptAside is how many of the damaged databases that were replaced are kept, of each.
const keptAside = 3

// Upkeep is something that keeps what a project writes from growing for ever. Run says
// in a few words what it did; it can be repeated.
type Upkeep struct {
	Name string
	Run  func(ctx context.Context) (did string, err error)
}

// Upkeep lists what a server is to do from time to time.
func (c *Checker) Upkeep() []Upkeep {
	return []Upkeep{
		{"write-ahead logs", func(ctx context.Context) (string, error) {
			freed, err := c.Threads.Store.Mend().TrimLogs(ctx)
			return said(freed >= 1<<20, "%d MiB shorter", freed>>20), err
		}},
		{"databases that were set aside", func(ctx context.Context) (string, error) {
			dropped, err := c.Threads.Store.Mend().DropAside(ctx, keptAside)
			return said(len(dropped) > 0, "removed %d", len(dropped)), err
		}},
		{"what starts have left", func(ctx context.Context) (string, error) {
			removed, err := c.SweepFolders(ctx)
			return said(removed > 0, "removed %d folders", removed), err
		}},
		{"drafts of knowledge entries", func(ctx context.Context) (string, error) {
			var removed int
			var failed []error
			err := c.drafts(ctx, math.MaxInt, func(e finish.Entry) {
				failed = append(failed, c.Threads.Finisher.RemoveDraft(e))
				removed++
			})
			return said(removed > 0, "removed %d", removed), errors.Join(append(failed, err)...)
		}},
	}
}

// said is a text if there is something to say.
func said(something bool, format string, args ...any) string {
	if !something {
		return ""
	}
	return fmt.Sprintf(format, args...)
}
