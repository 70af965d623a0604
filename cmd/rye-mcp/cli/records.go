package cli

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	remembered "github.com/rye-mcp/rye-mcp/runtime/memory"
	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/remote"
	"github.com/rye-mcp/rye-mcp/runtime/store/late"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/memories"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/recordserver"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// newRecords are what the threads of a project leave: in folders of this machine, which
// are copies where other machines have the threads, too.
func (p *project) newRecords(crash thread.Crashpoints) records.Records {
	local := records.Local{Home: p.state.Home}
	if !p.state.site.shared() {
		return local
	}
	return remote.New(remote.Options{
		Local: local, Boot: process.Here("").Boot, Crashpoints: crash,
		Server: recordserver.Late(func(ctx context.Context, create bool) (recordserver.Schema, error) {
			at, err := p.rowsThere(ctx, create)
			if at == nil {
				return nil, err
			}
			return at, nil
		}),
	})
}

// rowsThere is the store on the server; nil: there is none yet, unless it is to be made.
func (p *project) rowsThere(ctx context.Context, create bool) (*postgres.Store, error) {
	if create {
		if err := late.Make(ctx, p.store); err != nil {
			return nil, err
		}
	} else if _, err := p.store.Now(ctx); err != nil {
		return nil, err
	}
	return p.rows.Load(), nil
}

// entriesOf are the entries of memory as an index of this machine finds them, and the lock
// of who writes them: of this machine, or of all that have the project's threads.
func (p *project) entriesOf(local *rag.Index, seal *place.Seal) (remembered.Index, func(context.Context) (func(), error)) {
	if !p.state.site.shared() || seal == nil {
		return local, p.lockEntries
	}
	shared := &memories.Index{Local: local, Place: seal.Place(), Open: func(ctx context.Context, create bool) (memories.Schema, error) {
		at, err := p.rowsThere(ctx, create)
		if at == nil {
			return nil, err
		}
		return at, nil
	}}
	return shared, func(ctx context.Context) (func(), error) {
		here, err := p.lockEntries(ctx)
		if err != nil {
			return nil, err
		}
		there, err := shared.Lock(ctx)
		if err != nil {
			here()
			return nil, err
		}
		return func() { there(); here() }, nil
	}
}

// records are what the threads of the project leave beside their rows.
func (p *project) records() records.Records { return p.kept }

// unnamedFor is how long a content of the server is kept that nothing names: the process
// that has shipped it is about to name it.
const unnamedFor = 24 * time.Hour

// tidyRecords are the sweeps of records that other machines have, too.
func tidyRecords(kept records.Records, of *finish.Finisher) []tidy.Job {
	shared, is := kept.(*remote.Records)
	if !is {
		return nil
	}
	return []tidy.Job{{Name: "copies of records", Here: true, Run: func(ctx context.Context) (string, error) {
		removed, err := shared.Prune(ctx, of.ForgetKnowledge)
		if err == nil {
			_, err = shared.Server.Leftovers(ctx, unnamedFor)
		}
		if removed == 0 {
			return "", err
		}
		return "removed copies of " + counted(removed, "thread") + " that are gone", err
	}}}
}

// closeRecords ends what is followed.
func closeRecords(kept records.Records) {
	if shared, is := kept.(*remote.Records); is {
		shared.Close()
	}
}
