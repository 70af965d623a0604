package replay

import (
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// LeftIn finds what other threads had left for a recorded one, as it was told it: which
// thread was the latest of a directive then, nobody can say today.
func LeftIn(t *recording.Thread) resolve.Left { return leftIn{t} }

type leftIn struct{ thread *recording.Thread }

// Find implements [resolve.Left].
func (l leftIn) Find(id string, _ thread.ID) (*resolve.Found, error) {
	for e, err := range l.thread.Events() {
		if err != nil {
			return nil, err
		}
		if e.Type != thread.EventContextInjected {
			continue
		}
		p, err := transcript.Decode[transcript.ContextInjected](e)
		if err != nil {
			return nil, err
		}
		if p.ItemID == id && p.HookID == "" && p.Text != "" {
			return &resolve.Found{
				Entry:   resolve.Entry{Kind: item.Knowledge, ID: id, Space: item.Project, Path: "recording:" + id + ".md", Ext: ".md"},
				Content: []byte(p.Text), Hash: p.Hash, Recorded: true,
			}, nil
		}
	}
	return nil, &resolve.NotFoundError{Kind: item.Knowledge, ID: id, Why: "it is not on record what the thread had left"}
}
