package control

import (
	"os"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// gist is what a look at a thread tells of its thread.json.
type gist struct {
	limits   thread.Limits
	status   thread.State
	warnings []string
}

// maxGists bounds what is kept: some hundred bytes each.
const maxGists = 1000

// gists keeps what was read of thread.json files whose signature is checked, for
// as long as a file is the same one: it is replaced as a whole, and checking it
// again takes as long as the rest of a look. Nothing is decided by it; whoever
// grants something by a thread.json reads that.
type gists struct {
	mu   sync.Mutex
	kept map[thread.ID]keptGist
}

type keptGist struct {
	gist
	file os.FileInfo
}

// gistOf reads thread.json, unless it is known.
func (c *Controller) gistOf(id thread.ID) (gist, error) {
	dir := c.folder(id)
	info, err := os.Stat(dir.Meta())
	if err != nil {
		return gist{}, err
	}
	c.gists.mu.Lock()
	known, ok := c.gists.kept[id]
	c.gists.mu.Unlock()
	if ok && sameFile(known.file, info) {
		return known.gist, nil
	}
	return c.readGist(id, dir, info)
}

func (c *Controller) readGist(id thread.ID, dir folder.Folder, info os.FileInfo) (gist, error) {
	meta, err := dir.ReadMeta(c.Key)
	if err != nil {
		return gist{}, err
	}
	g := gist{limits: meta.Limits, status: meta.Status, warnings: meta.Warnings}
	c.gists.mu.Lock()
	defer c.gists.mu.Unlock()
	if c.gists.kept == nil || len(c.gists.kept) >= maxGists {
		c.gists.kept = map[thread.ID]keptGist{}
	}
	c.gists.kept[id] = keptGist{g, info}
	return g, nil
}

func sameFile(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
