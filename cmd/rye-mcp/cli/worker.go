package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/orchestrator/worker"
	"github.com/rye-mcp/rye-mcp/runtime/store/late"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// workerFlags are those of rye-mcp worker.
type workerFlags struct {
	projects      []string
	slots         int
	name          string
	leaveWhenIdle bool
}

// Bounds of what a worker is told.
const (
	defaultSlots  = 8
	maxSlots      = 10_000
	maxWorkerName = 100
)

func newWorkerCommand(sys System, opts *options) *cobra.Command {
	var flags workerFlags
	cmd := &cobra.Command{
		Use:   "worker --project DIR",
		Short: "Run threads of projects for everybody who shares their store",
		Long: `Run threads of projects for everybody who shares their store, which is on
PostgreSQL ("rye-mcp help guides/workers"). The worker takes threads from the queues of the
named folders, and of no others, while it has slots free. It has the keys of model
providers that its own environment and settings have; a thread that needs another is
left to a worker that has it.

SIGTERM and Ctrl-C drain it: it takes nothing new, and leaves when what it runs has
ended. A second one, more than a second later, ends what runs.`,
		Example: `  rye-mcp worker --project ~/src/shop --slots 8
  rye-mcp worker --project ~/src/shop --project ~/src/site --name build-1 --leave-when-idle`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(flags.projects) == 0 {
				flags.projects = []string{opts.project}
			}
			return runWorker(cmd.Context(), sys, *opts, flags)
		},
	}
	cmd.Flags().StringArrayVar(&flags.projects, "project", nil, "`folder` of a project whose threads it runs; repeat for more")
	cmd.Flags().IntVar(&flags.slots, "slots", defaultSlots, "how many threads it runs at the same time")
	cmd.Flags().StringVar(&flags.name, "name", "", "what status and lists call it; host and process number by default")
	cmd.Flags().BoolVar(&flags.leaveWhenIdle, "leave-when-idle", false, "leave when nothing runs, is queued or is to be tried again")
	return cmd
}

// runWorker works until the worker has drained.
func runWorker(ctx context.Context, sys System, opts options, flags workerFlags) error {
	w, err := newWorker(sys, flags)
	if err != nil {
		return err
	}
	sys.worker = w
	opened, err := openForWorker(ctx, sys, opts, flags.projects, w.Log)
	defer func() {
		for _, p := range opened {
			_ = p.Close() // its threads have ended, or are others' by now
		}
	}()
	if err != nil {
		return err
	}
	own := &connections{site: opened[0].state.site, now: sys.Now, migrations: sys.Migrations} // nothing else is in the way of the lease
	defer func() { _ = own.close() }()
	server, err := own.get(ctx)
	if err != nil {
		return err
	}
	w.Fleet = &fleet.Fleet{Pool: server.Pool(), TTL: sys.Lease}
	if err := addProjects(ctx, w, opened); err != nil {
		return err
	}
	w.Deliver = func(ctx context.Context, w *worker.Worker) (func(context.Context) error, error) {
		return deliver(ctx, w, opened)
	}
	w.Space = func() error { return enoughSpace(opened[0].state.Home().Dir) }
	w.Joined = func(*fleet.Lease) { tellAtWork(sys, w) }
	return work(ctx, sys, w, flags)
}

// newWorker is the worker of this process, which knows no project and no fleet yet.
func newWorker(sys System, flags workerFlags) (*worker.Worker, error) {
	host, err := sys.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the name of this host: %w", err)
	}
	if flags.name == "" {
		flags.name = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if err := flags.check(); err != nil {
		return nil, err
	}
	return &worker.Worker{
		Log: newLog(sys, sys.Stderr),
		Self: fleet.Worker{
			Name: flags.name, Process: thread.Process(process.Here(host).Self()), Version: version(), Slots: flags.slots,
		},
		Kill: func(ctx context.Context, of thread.Incarnation) error {
			return process.KillLeftovers(ctx, []string{spawn.WorkerMark(of, flags.name)})
		},
	}, nil
}

// enoughSpace returns an error where no thread can be written any more; the same bound lets
// doctor fail.
func enoughSpace(dir string) error {
	free, err := spaceAt(dir)
	if err == nil && free < noSpace {
		err = fmt.Errorf("%s has %d MiB left, less than %d", dir, free>>20, noSpace>>20)
	}
	return err
}

// tellAtWork tells on standard output that the worker is at work.
func tellAtWork(sys System, w *worker.Worker) {
	_, _ = fmt.Fprintf(sys.Stdout, "worker %s: %s for %s\n", w.Self.Name, counted(w.Self.Slots, "slot"), strings.Join(w.Self.Projects, ", "))
}

func (f workerFlags) check() error {
	if f.slots < 1 || f.slots > maxSlots {
		return &usageError{message: fmt.Sprintf("--slots %d is not between 1 and %d", f.slots, maxSlots), try: "--slots 8"}
	}
	if f.name != strings.TrimSpace(f.name) || len(f.name) > maxWorkerName || strings.ContainsFunc(f.name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return &usageError{
			message: fmt.Sprintf("--name %q is no name: at most %d characters in one line, without spaces around it", f.name, maxWorkerName), try: "--name build-1",
		}
	}
	return nil
}

// openForWorker opens the projects, which share one store. Those that are open are returned
// with an error too.
func openForWorker(ctx context.Context, sys System, opts options, dirs []string, log zerolog.Logger) (opened []*project, err error) {
	for _, dir := range dirs {
		opts.project = dir
		if dir, err = projectDir(sys, opts); err != nil {
			return opened, err
		}
		if dir, err = canonical(dir); err != nil {
			return opened, err
		}
		p, err := openProject(ctx, sys, dir, log)
		if err != nil {
			return opened, err
		}
		opened = append(opened, p)
		if err := fits(opened, p); err != nil {
			return opened, err
		}
		if err := late.Make(ctx, p.store); err != nil { // else nobody's first thread is heard of
			return opened, err
		}
	}
	return opened, nil
}

// fits refuses a project that the worker cannot have beside the others.
func fits(opened []*project, p *project) error {
	first := opened[0]
	switch {
	case !p.state.site.shared():
		return &usageError{
			message: fmt.Sprintf("the threads of %s are kept on this machine, where whoever starts them runs them; workers share a store on PostgreSQL", p.path),
			try:     "rye-mcp help guides/workers",
		}
	case p.state.site.url.Secret() != first.state.site.url.Secret():
		return &usageError{message: fmt.Sprintf("%s and %s are kept in different stores", first.path, p.path), try: "a worker for each store"}
	}
	for _, other := range opened[:len(opened)-1] {
		if other.state.site.project == p.state.site.project {
			return &usageError{
				message: fmt.Sprintf("%s and %s are both project %s", other.path, p.path, p.state.site.project), try: "name one of the two folders",
			}
		}
	}
	return nil
}

// addProjects tells the worker what it works with.
func addProjects(ctx context.Context, w *worker.Worker, opened []*project) error {
	for _, p := range opened {
		name := p.state.site.project
		schema, err := w.Fleet.Schema(ctx, name)
		if err != nil {
			return err
		}
		w.Projects = append(w.Projects, &worker.Project{
			Name: name, Schema: schema, Tidy: p.control.Tidy, Threads: p.control.Threads, Queue: p.control.Queue, Stop: p.control.Stop, AskAgain: p.askAgain,
			Fits: func(ctx context.Context) error { return p.rows.Load().Fits(ctx) }, // it was made when the worker opened it
			Has: func(ctx context.Context) (accepted string, able []string) {
				now := p.config.Read()
				return config.Accepted(now), p.providers.With(now).Usable(ctx)
			},
			Held: func(ctx context.Context, of thread.Incarnation) ([]fleet.Thread, error) {
				return w.Fleet.Threads(ctx, schema, of)
			},
		})
		p.control.Queue.Able = func(provider string) bool { return w.CanUse(name, provider) }
		w.Self.Projects = append(w.Self.Projects, name)
		w.Self.Machine = machineOf(p)
	}
	return nil
}

// work runs the worker until it is told to drain, by the first signal, and has, or is told
// again.
func work(ctx context.Context, sys System, w *worker.Worker, flags workerFlags) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	sys.second.means(stop)
	err := w.Run(working, worker.Ends{Drain: ctx.Done(), WhenIdle: flags.leaveWhenIdle})
	if taken, is := errors.AsType[*fleet.NameTakenError](err); is {
		return &usageError{message: taken.Error(), try: taken.Try()}
	}
	if noPlace, is := errors.AsType[*place.NoPlaceError](err); is {
		return &usageError{message: noPlace.Error(), try: noPlace.Try()}
	}
	return err
}
