package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Guest is what a process that is no worker knows of the fleet.
type Guest struct {
	// Fleet connects when it is needed: few processes ever start or settle a thread.
	Fleet   func(context.Context) (*fleet.Fleet, error)
	Project string       // its name in the store
	Self    fleet.Worker // without slots
	// Under is the worker whose thread this process runs: threads that it starts live by
	// that lease. Empty: there is none, and each run that it claims has a lease of its own.
	Under thread.Incarnation
	// Started are the settings that a thread was started with, and the workspace that it works
	// in as that stands, each nil where there is none; nil: they are not known.
	Started func(context.Context, thread.ID) (*thread.Accepted, *thread.Workspace)
	Log     zerolog.Logger

	mu     sync.Mutex
	leases map[thread.Incarnation]*keptLease
	kept   sync.WaitGroup
}

// guestWithin bounds what a guest asks the fleet.
const guestWithin = 5 * time.Second

// NewRun implements [threads.Fleet]. A process that cannot get a lease cannot write what the
// run is for either; it goes on without, and meets that there.
func (g *Guest) NewRun() (run thread.Run, done func()) {
	if g.Under != "" {
		return g.Under.NewRun(), func() {}
	}
	ctx, stop := context.WithTimeout(context.Background(), guestWithin)
	defer stop()
	own, err := g.incarnation(ctx)
	if err != nil {
		g.Log.Warn().Err(err).Msg("this process has no lease in the fleet")
	}
	run = own.NewRun()
	return run, func() { g.Back(run) }
}

// Own is the incarnation of the worker whose thread this process runs.
func (g *Guest) Own() thread.Incarnation { return g.Under }

// Room implements [threads.Fleet]: there is some while no worker takes threads of the
// project.
func (g *Guest) Room(ctx context.Context) (done func(), ok bool) {
	f, err := g.Fleet(ctx)
	served := false
	if err == nil {
		served, err = f.Serves(ctx, g.Project)
	}
	if err != nil {
		g.Log.Warn().Err(err).Msg("cannot tell whether workers take the threads of this project")
	}
	return func() {}, err == nil && !served
}

// Providers implements [threads.Fleet].
func (g *Guest) Providers(ctx context.Context) (able []string, served bool) {
	f, err := g.Fleet(ctx)
	if err == nil {
		able, served, err = f.Providers(ctx, g.Project)
	}
	if err != nil {
		g.Log.Warn().Err(err).Msg("cannot tell which providers the workers of this project can use")
	}
	return able, served
}

// NoWorker implements [threads.Fleet].
func (g *Guest) NoWorker(ctx context.Context, rec thread.Record) string {
	f, err := g.Fleet(ctx)
	if err != nil {
		return ""
	}
	workers, err := f.Workers(ctx)
	if err != nil {
		return ""
	}
	why := noWorker(workers, g.Project, rec)
	if why != "" || g.Started == nil {
		return why
	}
	accepted, in := g.Started(ctx, rec.ThreadID)
	if why = notThere(workers, g.Project, in); why == "" && accepted != nil {
		why = otherSettings(workers, g.Project, accepted.Settings)
	}
	return why
}

// Lacks implements [threads.Fleet]: only workers are asked what they lack.
func (g *Guest) Lacks(context.Context, []string, string) {}

// takingOf are those of the workers that take threads of a project.
func takingOf(workers []fleet.Seen, project string) []fleet.Seen {
	return slices.DeleteFunc(slices.Clone(workers), func(w fleet.Seen) bool {
		return !w.Alive || w.Draining || !slices.Contains(w.Projects, project)
	})
}

// notThere says that none of the workers of a project has the workspace of a thread, or can
// make it; empty: one does.
func notThere(workers []fleet.Seen, project string, in *thread.Workspace) string {
	workers = takingOf(workers, project)
	if in == nil || len(workers) == 0 {
		return ""
	}
	if in.At != "" {
		if slices.ContainsFunc(workers, func(w fleet.Seen) bool { return w.Machine == in.At || w.Machine == "" }) {
			return ""
		}
		return fmt.Sprintf("the workspace of thread %s is on %s alone, where no worker takes threads of project %s: "+
			"start one there (rye-mcp worker --project DIR); or cancel this thread, and start anew without what was done in that workspace", in.Of, in.AtName, project)
	}
	if in.Baseline != "" && in.Bundle+in.Result == "" {
		return fmt.Sprintf("the workspace of thread %s has not come along to this store: cancel this thread, and start anew", in.Of)
	}
	lacks := func(w fleet.Seen) string {
		at := slices.IndexFunc(w.Lacks, func(id string) bool { return strings.Contains(in.Needs, id) })
		if at < 0 {
			return ""
		}
		return w.Lacks[at]
	}
	if slices.ContainsFunc(workers, func(w fleet.Seen) bool { return lacks(w) == "" }) {
		return ""
	}
	return fmt.Sprintf("the thread's workspace builds upon commit %.12s, which no worker of project %s has (%s): git fetch in the checkout of one, "+
		"and it takes the thread within seconds", lacks(workers[0]), project, names(workers))
}

// otherSettings says that the users of all workers of a project have accepted other settings
// of it than a thread was started with; empty: one has not.
func otherSettings(workers []fleet.Seen, project, started string) string {
	workers = takingOf(workers, project)
	same := func(w fleet.Seen) bool {
		at := slices.Index(w.Projects, project)
		return at >= len(w.Settings) || w.Settings[at] == started // an older version says nothing
	}
	if len(workers) == 0 || slices.ContainsFunc(workers, same) {
		return ""
	}
	return fmt.Sprintf("the users of the workers of project %s (%s) have accepted other settings of it than were accepted where the thread was started: "+
		"a person has to accept the same there; or cancel the thread and start it again", project, names(workers))
}

// noWorker says why none of the workers takes a thread; empty: one of them does.
func noWorker(workers []fleet.Seen, project string, rec thread.Record) string {
	provider, _, _ := strings.Cut(rec.Model, "/")
	needs := "the files and a key for " + provider
	if rec.Kind == thread.KindTool {
		needs = "the files"
	}
	const until = "start one with rye-mcp worker --project DIR; until then a server, or whoever waits for the thread, starts it on a machine that has "
	workers = slices.DeleteFunc(workers, func(w fleet.Seen) bool { return !w.Alive || !slices.Contains(w.Projects, project) })
	if len(workers) == 0 {
		return fmt.Sprintf("no worker takes threads of project %s: %s%s", project, until, needs)
	}
	taking := slices.DeleteFunc(slices.Clone(workers), func(w fleet.Seen) bool { return w.Draining })
	if len(taking) == 0 {
		return fmt.Sprintf("the workers of project %s take nothing new (%s): %s%s", project, names(workers), until, needs)
	}
	able := func(w fleet.Seen) bool {
		return rec.Kind == thread.KindTool || slices.Contains(w.Able[project], provider)
	}
	if !slices.ContainsFunc(taking, able) {
		return fmt.Sprintf("no worker of project %s can use model provider %s (%s): start one that has its settings and key", project, provider, names(taking))
	}
	return ""
}

// maxNamed is how many workers a sentence names.
const maxNamed = 5

func names(workers []fleet.Seen) string {
	var text []string
	for _, w := range workers[:min(len(workers), maxNamed)] {
		text = append(text, w.Name)
	}
	if more := len(workers) - maxNamed; more > 0 {
		text = append(text, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(text, ", ")
}
