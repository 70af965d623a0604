package cli

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/remote"
	"github.com/rye-mcp/rye-mcp/runtime/store/late"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/recordserver"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
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
			if create {
				if err := late.Make(ctx, p.store); err != nil {
					return nil, err
				}
			} else if _, err := p.store.Now(ctx); err != nil {
				return nil, err
			}
			if at := p.rows.Load(); at != nil {
				return at, nil
			}
			return nil, nil //nolint:nilnil // there is none yet
		}),
	})
}

// records are what the threads of the project leave beside their rows.
func (p *project) records() records.Records { return p.kept }

// unnamedFor is how long a content of the server is kept that nothing names: whoever has
// shipped it is about to name it.
const unnamedFor = 24 * time.Hour

// tidyRecords are the sweeps of records that other machines have, too.
func (p *project) tidyRecords() []tidy.Job {
	shared, is := p.kept.(*remote.Records)
	if !is {
		return nil
	}
	return []tidy.Job{{Name: "copies of records", Run: func(ctx context.Context) (string, error) {
		removed, err := shared.Prune(ctx)
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
func (p *project) closeRecords() {
	if shared, is := p.kept.(*remote.Records); is {
		shared.Close()
	}
}

// openedRows notes the store on a server, whose connections records use, too.
func (p *project) openedRows(st *postgres.Store) { p.rows.Store(st) }
