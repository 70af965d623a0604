package snapshot

import (
	"fmt"
	"path"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Pins hold what a thread uses against the snapshot that it works by. They are not changed
// after they were made, and are safe for concurrent use.
type Pins struct {
	name  Hash
	files map[pinned]Hash
}

type pinned struct {
	space item.Space
	path  string
}

// PinsOf are the pins of a manifest, which has that name.
func PinsOf(name Hash, m *Manifest) *Pins {
	p := &Pins{name: name, files: make(map[pinned]Hash, len(m.Files))}
	for _, f := range m.Files {
		p.files[pinned{f.Space, f.Path}] = f.Hash
	}
	return p
}

// Name is that of the snapshot.
func (p *Pins) Name() Hash { return p.name }

// ChangedError says that a file is not the one that a thread works by.
type ChangedError struct {
	Snapshot Hash
	What     string // the item, for people and models: `tool "x" in the project space`
	Path     string // of the file, below the directory of its space
	Want     Hash   // empty: the snapshot has no such file
	Is       Hash
}

func (e *ChangedError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("%s is not part of snapshot %s, which this thread works by: %s was added after that was made",
			e.What, e.Snapshot.Short(), item.Shown(e.Path))
	}
	return fmt.Sprintf("%s was changed after snapshot %s was made, which this thread works by: %s had sha256 %s and now has %s",
		e.What, e.Snapshot.Short(), item.Shown(e.Path), e.Want.Short(), e.Is.Short())
}

// Check refuses a file of the project or the user that is not as the snapshot has it. The
// error is a *tool.Fault around a [*ChangedError]. Check lets files pass that are built in, settings, or left by
// threads.
func (p *Pins) Check(s trust.Subject) error {
	if p == nil || s.Kind == "" || s.Space == item.System || s.Recorded || item.IsThreadRecord(s.Kind, s.ID) {
		return nil
	}
	below := resolve.Entry{Kind: s.Kind, ID: s.ID, Ext: s.Ext, Folder: s.Folder}.Below()
	if err := p.check(s, below, HashOf(s.Content)); err != nil {
		return err
	}
	if s.Detached == nil || s.Folder == "" || len(s.Detached.Files) < 2 {
		return nil
	}
	for _, f := range s.Detached.Files { // those beside it
		if err := p.check(s, path.Join(path.Dir(below), f.Name), Hash(f.Hash)); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pins) check(s trust.Subject, below string, is Hash) error {
	if want := p.files[pinned{s.Space, below}]; want != is {
		return tool.Faultf(tool.CodeInvalidItem, "%w", &ChangedError{Snapshot: p.name, What: s.String(), Path: below, Want: want, Is: is}).
			With("path", s.Path).
			WithHint("Undo the change, or finish without it and say so: this thread goes on when it is resumed, with the items as they are then.").
			WithTry("rye-mcp threads resume, or start the thread again: it takes the items as they are then")
	}
	return nil
}
