package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/worker"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/delivery"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/mirrors"
)

// delivered is a project whose hints and periodic work a worker takes.
type delivered struct {
	*worker.Project

	mirroring *mirroring
}

// deliver has River bring hints and periodic work to a worker of the opened projects.
func deliver(ctx context.Context, w *worker.Worker, opened []*project) (stop func(context.Context) error, err error) {
	projects := map[string]delivered{}
	for i, p := range w.Projects { // in the order of the opened ones
		projects[p.Schema] = delivered{p, opened[i].mirroring}
	}
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	d, err := delivery.Start(ctx, deliveryOptions(sending, w, projects))
	if err != nil {
		stopSending()
		return nil, err
	}
	var serving sync.WaitGroup
	serving.Go(func() { serveMirrors(sending, w, d, projects) })
	return func(ctx context.Context) error {
		stopSending()
		serving.Wait()
		return d.Stop(ctx)
	}, nil
}

// deliveryOptions say what is done with what is delivered. Copies are sent until sending ends.
func deliveryOptions(sending context.Context, w *worker.Worker, projects map[string]delivered) delivery.Options {
	o := delivery.Options{Pool: w.Fleet.Pool, Projects: map[string]func(){}}
	for schema, p := range projects {
		o.Projects[schema] = p.Queue.Wake
	}
	o.Sweep = func(ctx context.Context, schema string) error {
		err := w.SweepProject(ctx, projects[schema].Project)
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
	o.Mirrors = func(ctx context.Context, schema string) ([]string, error) {
		at := projects[schema].mirroring.rows.Load()
		if at == nil {
			return nil, nil
		}
		return mirrors.Of(ctx, at.Pool())
	}
	o.Mirror = func(ctx context.Context, schema string) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(sending, stop)()
		err := projects[schema].mirroring.sendHere(ctx)
		if err != nil && ctx.Err() == nil {
			w.Log.Warn().Err(err).Str("project", projects[schema].Name).Msg("mirror: what is due is left for the next job")
		}
		return err
	}
	return o
}

// lookForMirrors is how often a worker looks whether its user has a mirror.
const lookForMirrors = 5 * time.Second

// serveMirrors has the worker take the jobs of the mirrors that its user has, also of one that
// is named while it works.
func serveMirrors(ctx context.Context, w *worker.Worker, d *delivery.Delivery, projects map[string]delivered) {
	for {
		for schema, p := range projects {
			id, err := p.mirroring.mirrorServed(ctx)
			if err == nil {
				err = d.Serve(ctx, schema, id)
			}
			if err != nil && ctx.Err() == nil {
				w.Log.Warn().Err(err).Str("project", p.Name).Msg("mirror: its jobs are not taken yet")
			}
		}
		if wait(ctx, lookForMirrors) != nil {
			return
		}
	}
}
