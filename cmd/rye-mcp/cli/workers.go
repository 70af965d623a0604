package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// workerJSON is a worker as workers list writes it with --json.
type workerJSON struct {
	Name       string    `json:"name"`
	State      string    `json:"state"` // at work, draining, gone
	Host       string    `json:"host"`
	PID        int       `json:"pid"`
	Version    string    `json:"version"`
	Slots      int       `json:"slots"`
	Running    int       `json:"running"` // threads of this project
	Projects   []string  `json:"projects"`
	Providers  []string  `json:"providers"`
	StartedAt  time.Time `json:"started_at"`
	LeaseUntil time.Time `json:"lease_until"`
}

// workerListJSON is what workers list writes with --json.
type workerListJSON struct {
	Workers []workerJSON `json:"workers"`
}

func newWorkersCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	list := &cobra.Command{
		Use:   "list",
		Short: "List the workers that share the project's store",
		Long: `List the workers that share the project's store, with those that are gone since a
day at most. A worker whose lease has run out is gone: what it ran is settled.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error { return listWorkers(cmd.Context(), sys, *opts, asJSON) }),
	}
	jsonFlag(list, &asJSON)
	cmd := &cobra.Command{
		Use: "workers", Short: "Look at the workers that share a store on PostgreSQL", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(list)
	return cmd
}

func listWorkers(ctx context.Context, sys System, opts options, asJSON bool) error {
	return inProject(ctx, sys, opts, func(ctx context.Context, p *project) error {
		if !p.state.site.shared() {
			return tool.Faultf(tool.CodeUnsupported, "the threads of this project are kept on this machine, and have no workers").
				WithTry("rye-mcp help guides/workers")
		}
		f, err := fleetNow(ctx, p)
		if err != nil {
			return err
		}
		seen, err := f.Workers(ctx)
		if err != nil {
			return err
		}
		told := workerListJSON{Workers: []workerJSON{}}
		schema, err := f.Schema(ctx, p.state.site.project)
		for _, w := range seen {
			one := workerOf(w)
			if w.Alive && err == nil { // else there is no thread yet
				held, err := f.Threads(ctx, schema, w.Incarnation)
				if err != nil {
					return err
				}
				one.Running = len(held)
			}
			told.Workers = append(told.Workers, one)
		}
		if asJSON {
			return writeJSON(sys.Stdout, told)
		}
		return writeWorkers(newDisplay(sys, opts), told.Workers)
	})
}

func workerOf(w fleet.Seen) workerJSON {
	state := "at work"
	switch {
	case !w.Alive:
		state = "gone"
	case w.Draining:
		state = "draining"
	}
	return workerJSON{
		Name: w.Name, State: state, Host: w.Process.Host, PID: w.Process.PID, Version: w.Version, Slots: w.Slots,
		Projects: w.Projects, Providers: w.Providers(), StartedAt: w.StartedAt.UTC(), LeaseUntil: w.LeaseUntil.UTC(),
	}
}

func writeWorkers(d display, workers []workerJSON) error {
	if len(workers) == 0 {
		_, err := fmt.Fprintln(d.out, "no worker: start one with rye-mcp worker --project DIR")
		return err
	}
	t := table{header: []string{"name", "state", "running", "slots", "projects", "providers", "version", "host"}}
	for _, w := range workers {
		t.add(text(w.Name), text(w.State), text(fmt.Sprint(w.Running)), text(fmt.Sprint(w.Slots)), text(strings.Join(w.Projects, ", ")),
			text(strings.Join(w.Providers, ", ")), text(w.Version), text(w.Host))
	}
	return t.write(d)
}
