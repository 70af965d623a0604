package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/relocate"
	remembered "github.com/rye-mcp/rye-mcp/runtime/memory"
	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// movedMemory is memory on its way from one place of a project to another.
type movedMemory struct{ from, to keptMemory }

// keptMemory is all that is kept in the index of memory for one place.
type keptMemory struct {
	*remembered.Book

	of    *project
	store string     // the setting that says where the index lies
	index *rag.Index // on this machine
}

// newMovedMemory finds memory in both places, also while it is off.
func newMovedMemory(from, to *project) (m movedMemory, err error) {
	if m.from, err = from.keptMemory(); err == nil {
		m.to, err = to.keptMemory()
	}
	return m, err
}

func (p *project) keptMemory() (k keptMemory, err error) {
	set, err := p.keptSettings()
	if err != nil {
		return k, err
	}
	k.of, k.store, k.index = p, set.Store, p.memory.index(set.Store)
	k.Book, err = p.entries(openedMemory{settings: set, index: k.index}, nil)
	return k, err
}

// Lock implements [relocate.Memory].
func (m movedMemory) Lock(ctx context.Context) (unlock func(), err error) {
	from, err := m.from.Lock(ctx)
	if err != nil {
		return nil, err
	}
	to, err := m.to.Lock(ctx)
	if err != nil {
		from()
		return nil, err
	}
	return func() { to(); from() }, nil
}

// isEntry reports whether rows of a namespace go as entries, which are sealed.
func isEntry(namespace string) bool { return strings.HasPrefix(namespace, "rye.") }

// Carry implements [relocate.Memory].
func (m movedMemory) Carry(ctx context.Context) (noted relocate.Noted, err error) {
	carried, err := m.from.CarryTo(ctx, m.to.Book)
	noted.Entries, noted.Refused = carried.Entries, carried.Refused
	if err != nil {
		return noted, err
	}
	there, err := m.to.of.memory.place(m.to.of.state.Make)
	if err == nil {
		noted.Texts, err = m.from.index.CopyTo(ctx, m.to.index, m.from.Seal.Place(), there, isEntry)
	}
	return noted, err
}

// copyOfMemory is what is left of entries that lay in a file of all projects.
const copyOfMemory = "memory.md"

// Empty implements [relocate.Memory]. A file of the project alone goes to what was put aside.
// Of entries that are on a server the schema has all that was put aside, and what goes here
// are copies.
func (m movedMemory) Empty(ctx context.Context, kept string) error {
	shared := m.from.of.state.site.shared()
	if !shared && strings.HasPrefix(m.from.store, config.MemoryInState) {
		return m.from.putAside(kept)
	}
	here := *m.from.Book
	here.Index, here.Lock = m.from.index, func(context.Context) (func(), error) { return func() {}, nil } // which the caller has
	if !shared {
		if err := writeCopy(ctx, &here, filepath.Join(kept, copyOfMemory)); err != nil {
			return err
		}
	}
	if err := here.Empty(ctx); err != nil {
		return err
	}
	return m.from.index.Drop(ctx, m.from.Seal.Place(), isEntry)
}

// putAside moves the folder of the index, which has nothing else, to another.
func (k keptMemory) putAside(into string) error {
	home, err := k.of.memory.homeOf(k.store, k.of.state.Find)
	if err != nil {
		return err
	}
	if err := k.index.Close(); err != nil {
		return err
	}
	dir := filepath.Dir(home.Path)
	if err := os.Rename(dir, filepath.Join(into, filepath.Base(dir))); errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was ever noted
	} else if err != nil {
		return err
	}
	return errors.Join(syncFolder(into), syncFolder(filepath.Dir(dir)))
}

// writeCopy writes entries to a file that "memory import" reads.
func writeCopy(ctx context.Context, b *remembered.Book, file string) error {
	all, err := b.Export(ctx, nil)
	if err != nil || len(all.Entries) == 0 {
		return err
	}
	var out bytes.Buffer
	if err := remembered.WriteMarkdown(&out, "What threads of "+filepath.Base(b.Project)+" remember", all.Entries); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o600)
}
