package digest

import (
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// Promised returns a resolver for those who look at items and at no threads: what a thread
// of a directive leaves is promised when there is that directive. A request key may be
// anything.
func Promised(r *resolve.Resolver) *resolve.Resolver { return r.WithLeft(promise{r}) }

type promise struct{ items *resolve.Resolver }

// Find implements [resolve.Left].
func (p promise) Find(id string, _ thread.ID) (*resolve.Found, error) {
	if directive, is := strings.CutPrefix(id, item.LatestThread); is {
		if _, err := p.items.Find(item.Directive, directive); err != nil {
			return nil, err
		}
	}
	return &resolve.Found{
		Entry:   resolve.Entry{Kind: item.Knowledge, ID: id, Space: item.Project, Path: Path(""), Ext: extension},
		Content: []byte("What a thread has left when it has completed.\n"),
	}, nil
}
