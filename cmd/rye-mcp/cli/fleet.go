package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/orchestrator/worker"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// joinFleet gives a project whose threads other machines have, too, what it knows of the
// fleet: the lives of their threads, and who may give slots. Nothing is asked yet.
func joinFleet(p *project, sys System, log zerolog.Logger) {
	if !p.state.site.shared() {
		return
	}
	under, name := sys.underWorker()
	var own func() thread.Incarnation
	if sys.worker != nil {
		name, own = sys.worker.Self.Name, sys.worker.Own
		p.fleet = sys.worker
	} else {
		p.guest = &worker.Guest{
			Fleet: func(ctx context.Context) (*fleet.Fleet, error) { return fleetNow(ctx, p) }, Project: p.state.site.project, Under: under, Log: log,
			Started: func(ctx context.Context, id thread.ID) (*thread.Accepted, *thread.Workspace) {
				meta, _ := p.kept.Of(id).Meta().Read() // its own process says what is wrong with it
				return meta.Accepted, p.control.Threads.WorkspaceFor(ctx, meta)
			},
			Self: fleet.Worker{Name: guestName(p), Process: thread.Process(p.place.Self()), Version: version(), Machine: locksOf(p)},
		}
		p.fleet, own = p.guest, p.guest.Own
	}
	p.place.Worker = name
	leased := &life.Leased{Life: newLife(p), Own: own, Alive: func(ctx context.Context, i thread.Incarnation) (bool, error) {
		f, err := fleetNow(ctx, p)
		if err != nil {
			return false, err
		}
		return f.Alive(ctx, i, locksOf(p))
	}}
	if p.guest != nil {
		leased.Leases = p.guest
	}
	p.life, p.askAgain = leased, leased.AskAgain
}

// underWorker is the worker whose thread this process runs. The environment alone says
// nothing: a process that a thread has left running, or anybody's, can have a variable of that name.
func (s System) underWorker() (by thread.Incarnation, name string) {
	if s.store == nil || s.store.handed == nil {
		return "", ""
	}
	by, name = spawn.UnderWorker(s.Getenv(spawn.WorkerVariable))
	if by != s.store.handed.Run.Incarnation() {
		return "", ""
	}
	return by, name
}

// machineOf names this machine and its user: two users of a machine accept settings apart.
func machineOf(p *project) string {
	return snapshot.HashOf([]byte(p.place.Host + "\x00" + p.state.finder.User)).Short()
}

// locksOf names where the locks of this process are seen: by every process of this user that
// knows the same numbers of processes. It is empty where the system does not tell.
func locksOf(p *project) string {
	if p.place.Boot == "" {
		return ""
	}
	here := []string{p.place.Host, p.place.Boot, p.place.PIDNamespace, p.state.finder.User}
	return snapshot.HashOf([]byte(strings.Join(here, "\x00"))).Short()
}

// guestName names a process that is no worker.
func guestName(p *project) string {
	self := p.place.Self()
	return fmt.Sprintf("%s/%d", self.Host, self.PID)
}

// fleetNow are the workers of the server of this project.
func fleetNow(ctx context.Context, p *project) (*fleet.Fleet, error) {
	server, err := p.server.get(ctx)
	if err != nil {
		return nil, err
	}
	return &fleet.Fleet{Pool: server.Pool()}, nil
}

// workerName is the name of the worker that this process is.
func (s System) workerName() string {
	if s.worker == nil {
		return ""
	}
	return s.worker.Self.Name
}
