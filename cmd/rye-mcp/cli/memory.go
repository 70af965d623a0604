package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/rag/embed"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// memory is what threads of the project remember beyond what is declared. Nothing of it is
// opened, made or looked for before it is on and used.
type memory struct {
	settings func() (config.Memory, error) // as they hold for a call
	state    *projectState
	home     func() (string, error) // of the person
	damaged  func(rag.Damage)       // tells the person
	source   *embed.Source

	mu      sync.Mutex
	indexes map[string]*rag.Index // by the setting that says where they lie
	met     []string              // what became of those that were damaged
}

// newMemory is the memory of a project.
func newMemory(sys System, p *project, log zerolog.Logger) *memory {
	m := &memory{
		settings: p.memorySettings, state: p.state, home: sys.HomeDir,
		source:  embed.NewSource(embed.Deps{Providers: p.providers, Now: sys.Now}),
		indexes: map[string]*rag.Index{},
	}
	m.damaged = func(d rag.Damage) {
		said := damagedMemory(d)
		warn(sys, log.Warn().Err(d.Err).Str("kept", d.Aside), said)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.met = append(m.met, said)
	}
	return m
}

// warnings tell what became of the indexes that this process has found damaged.
func (m *memory) warnings() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.met)
}

// memorySettings are the settings of memory: at the moment, or of the thread that this
// process runs.
func (p *project) memorySettings() (config.Memory, error) {
	if p.decided != nil {
		return memoryIn(p.decided)()
	}
	return memoryIn(p.config.Read())()
}

// memoryIn are those of one version of the settings.
func memoryIn(settings interface {
	Memory() (config.Memory, []string, error)
}) func() (config.Memory, error) {
	return func() (config.Memory, error) {
		set, _, err := settings.Memory()
		return set, err
	}
}

// idleWithout reports whether a tool is one of memory, which is off: no request of a thread
// has to pay for its schema.
func idleWithout(memory func() (config.Memory, error)) func(id string) bool {
	return func(id string) bool {
		if !strings.HasPrefix(id, "rye/rag/") && !strings.HasPrefix(id, "rye/memory/") {
			return false
		}
		set, err := memory()
		return err != nil || !set.Enabled
	}
}

// openedMemory is memory as one call sees it.
type openedMemory struct {
	settings config.Memory
	index    *rag.Index
}

// open opens memory for a call; false: it is off, and nothing was touched.
func (m *memory) open() (openedMemory, bool, error) {
	set, err := m.settings()
	if err != nil || !set.Enabled {
		return openedMemory{}, false, err
	}
	return openedMemory{set, m.index(set.Store)}, true, nil
}

// embedder turns texts into vectors by settings; purse pays, where it is not nil.
func (m *memory) embedder(set config.Memory, purse tool.Purse) embed.Client {
	return m.source.For(set.Embedding, purse)
}

// index is the index at a place that the settings name.
func (m *memory) index(store string) *rag.Index {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x := m.indexes[store]; x != nil {
		return x
	}
	x := rag.New(rag.Options{
		Find:    func(context.Context) (rag.Home, error) { return m.homeOf(store, m.state.Find) },
		Make:    func(context.Context) (rag.Home, error) { return m.homeOf(store, m.state.Make) },
		Damaged: m.damaged,
		Now:     m.state.finder.Now,
	})
	m.indexes[store] = x
	return x
}

// damagedMemory says what became of an index that was set aside.
func damagedMemory(d rag.Damage) string {
	kept := filepath.Base(d.Aside)
	if errors.Is(d.Err, rag.ErrForeign) {
		return fmt.Sprintf("the index of memory %s is not the one that was made here; nothing of it was read, and it is kept as %s", d.Path, kept)
	}
	if d.Unknown {
		return fmt.Sprintf("the index of memory %s is damaged (%v); %d %s brought back, how many are lost cannot be told, and it is kept as %s. If you have an export: rye-mcp memory import FILE",
			d.Path, d.Err, d.Saved, verb(d.Saved, "row was", "rows were"), kept)
	}
	return fmt.Sprintf("the index of memory %s is damaged (%v); %d %s brought back, %d could not be read, and it is kept as %s",
		d.Path, d.Err, d.Saved, verb(d.Saved, "row was", "rows were"), d.Lost, kept)
}

// memoryMark names the index in the mark that it carries.
const memoryMark = "memory"

// homeOf is where an index lies. One in the user's state of the project carries the mark
// of that place; one elsewhere the person has named, for all projects.
func (m *memory) homeOf(store string, state func() (place.State, error)) (rag.Home, error) {
	below, inState := strings.CutPrefix(store, config.MemoryInState)
	if !inState {
		path, err := m.person(store)
		return rag.Home{Path: path}, err
	}
	found, err := state()
	if err != nil || found.Seal == nil {
		return rag.Home{}, err
	}
	return rag.Home{Path: filepath.Join(filepath.Dir(found.Dir), filepath.FromSlash(below)), Mark: found.Seal.Mark(memoryMark)}, nil
}

// person is a path that the person has written.
func (m *memory) person(path string) (string, error) {
	below, inHome := strings.CutPrefix(path, "~/")
	if !inHome {
		return path, nil
	}
	home, err := m.home()
	return filepath.Join(home, below), err
}

// place is what rows of the project are stored under: it stays when the folder moves.
func (m *memory) place(find func() (place.State, error)) (string, error) {
	found, err := find()
	if err != nil || found.Seal == nil {
		return "", err
	}
	return found.Seal.Place(), nil
}

// alone keeps other processes from embedding the whole index at the same time.
func (m *memory) alone(ctx context.Context, x *rag.Index) (release func(), busy bool, err error) {
	status, err := x.Status(ctx)
	if err != nil || status.Path == "" {
		return func() {}, false, err
	}
	lock, err := process.Acquire(filepath.Join(filepath.Dir(status.Path), "reindex.lock"))
	if errors.Is(err, process.ErrLocked) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	return func() { _ = lock.Release() }, false, nil // it ends with the process at the latest
}

// close closes what was opened.
func (m *memory) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var failed error
	for _, x := range m.indexes {
		failed = errors.Join(failed, x.Close())
	}
	return failed
}
