package cli

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/snapshots"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// newSnapshots are those of the items of a project, on this machine and where its machines
// share them.
func newSnapshots(sys System, p *project) *snapshot.Keeper {
	local := snapshot.Local{Now: sys.Now, Dir: func() string {
		if home := p.state.Home(); home.Dir != "" {
			return home.Snapshots()
		}
		return ""
	}}
	return &snapshot.Keeper{
		Local: local, Now: sys.Now, Shared: sharedSnapshots(p, sys.Now),
		Prepare: func() error { _, err := p.state.Make(); return err },
		Maker: &snapshot.Maker{
			Roots: p.resolver.Roots(), Store: local, Now: sys.Now, Crashpoints: sys.Crashpoints,
			Seal: func() *place.Seal { return p.state.Home().Seal },
			Program: sync.OnceValue(func() snapshot.Program {
				return snapshot.Program{Version: version(), System: snapshot.Hash(system.Sum())}
			}),
			Index: func() string {
				if dir := local.Dir(); dir != "" {
					return filepath.Join(dir, "index")
				}
				return ""
			},
		},
		// They are apart from the state, which commands of tools may not read.
		Layouts: func() (snapshot.Layouts, error) {
			cache, err := search.CacheDir(sys.Getenv)
			if err != nil {
				return snapshot.Layouts{}, err
			}
			seal := p.state.Home().Seal
			if seal == nil {
				return snapshot.Layouts{}, place.ErrNoState
			}
			return snapshot.Layouts{Dir: filepath.Join(cache, "items", seal.Place()), Now: sys.Now, Crashpoints: sys.Crashpoints}, nil
		},
	}
}

// sharedSnapshots is where the machines of the project share snapshots; nil while there is
// one machine. The schema is made with the first.
func sharedSnapshots(p *project, now func() time.Time) func(context.Context) (snapshot.Store, error) {
	if !p.state.site.shared() {
		return nil
	}
	return func(ctx context.Context) (snapshot.Store, error) {
		at, err := p.rowsThere(ctx, true)
		if err != nil {
			return nil, err
		}
		return snapshots.Store{At: at, Now: now}, nil
	}
}

// threadItems is what the thread of a process works by.
type threadItems struct {
	snapshot.Own
	// check refuses what is not as the thread has to have it; nil: it has no snapshot.
	check func(trust.Subject) error
}

// itemsOf are the items that a thread works by, which its starter had ready on this machine.
// With a snapshot that cannot be used the thread can use no item, and says why.
func itemsOf(ctx context.Context, from snapshot.Local, seal *place.Seal, meta thread.Meta, laidOut string) threadItems {
	if meta.Snapshot == "" {
		return threadItems{}
	}
	name := snapshot.Hash(meta.Snapshot)
	m, err := snapshot.Open(ctx, from, seal, name)
	if err != nil {
		unusable := threads.ItemsFault(err)
		return threadItems{check: func(trust.Subject) error { return unusable }}
	}
	pins := snapshot.PinsOf(name, m)
	return threadItems{snapshot.Own{Pins: pins, Folder: laidOut}, pins.Check}
}

// from is where the items lie that a process uses, among the directories of all.
func (t threadItems) from(all *resolve.Resolver) *resolve.Resolver {
	if t.Folder == "" {
		return all
	}
	return all.At(snapshot.RootsOf(t.Folder))
}

// over is the gate for the items that a process uses.
func (t threadItems) over(gate *trust.Gate) *trust.Gate {
	if t.check == nil {
		return gate
	}
	return gate.PinnedBy(t.check)
}
