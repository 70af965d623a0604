package cli

import (
	"context"
	"errors"

	"github.com/rye-mcp/rye-mcp/orchestrator/worker"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/delivery"
)

// deliver has River bring hints and periodic work to a worker.
func deliver(ctx context.Context, w *worker.Worker) (stop func(context.Context) error, err error) {
	o := delivery.Options{Pool: w.Fleet.Pool, Projects: map[string]func(context.Context){}}
	projects := map[string]*worker.Project{}
	for _, p := range w.Projects {
		projects[p.Schema] = p
		o.Projects[p.Schema] = func(ctx context.Context) { p.Queue.DispatchAndLog(ctx, false, nil) }
	}
	o.Sweep = func(ctx context.Context, schema string) error {
		err := w.SweepProject(ctx, projects[schema])
		if err != nil && ctx.Err() == nil {
			w.Log.Warn().Err(err).Str("project", projects[schema].Name).Msg("sweep")
		}
		return err
	}
	o.Fleet = func(ctx context.Context) ([]string, error) {
		_, forgot := w.Fleet.Forget(ctx)
		served, err := w.Fleet.Served(ctx)
		return served, errors.Join(forgot, err)
	}
	d, err := delivery.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	return d.Stop, nil
}
