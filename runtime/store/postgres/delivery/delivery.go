// Package delivery carries hints and periodic work to the workers of a fleet by River, on the
// same PostgreSQL. A hint is inserted in the transaction that makes a thread startable, by a
// trigger of its project's schema; what is to be started, and in which order, stands in the
// rows alone. Periodic work is inserted by River's elected leader and done by one worker.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// schema has River's tables.
const schema = "rye"

// fleetQueue has what is done once for the whole fleet.
const fleetQueue = "fleet"

// Times of the delivery.
const (
	// cooldown is the least time between two fetches: River's own 100 ms is most of the time
	// that a start takes.
	cooldown = time.Millisecond
	// poll is behind what is notified, and for what is inserted by triggers, which notify
	// nobody.
	poll = time.Second
	// kept is how long a job that is done stays in the table.
	kept = time.Minute
	// Every is how often periodic work is due.
	Every = time.Minute
	// stopWithin bounds the wait for jobs at the end.
	stopWithin = 5 * time.Second
)

// Options of a delivery.
type Options struct {
	Pool *pgxpool.Pool
	// Projects are the schemas of the projects whose hints this worker takes, and what a
	// hint does.
	Projects map[string]func(context.Context)
	// Sweep does periodic work of a project of this worker, by its schema.
	Sweep func(ctx context.Context, schema string) error
	// Fleet does what is due once for all, and returns the schemas of the projects that have
	// a worker, whose sweeps are then due.
	Fleet func(context.Context) ([]string, error)
}

// Delivery is a running client of River.
type Delivery struct{ client *river.Client[pgx.Tx] }

// QueueOf is the queue of a project by its schema.
func QueueOf(projectSchema string) string {
	return "p_" + projectSchema[max(0, len(projectSchema)-hashLength):]
}

// hashLength is how much of a schema's name is a hash of the project's.
const hashLength = 12

type startArgs struct {
	ThreadID string `json:"thread_id"`
}

// Kind implements [river.JobArgs].
func (startArgs) Kind() string { return "start" }

type sweepArgs struct {
	Schema string `json:"schema" river:"unique"`
}

// Kind implements [river.JobArgs].
func (sweepArgs) Kind() string { return "sweep" }

type fleetArgs struct{}

// Kind implements [river.JobArgs].
func (fleetArgs) Kind() string { return "fleet" }

// Start brings River's tables up to date, and begins to work. A hint that has come before is
// delivered, too.
func Start(ctx context.Context, o Options) (*Delivery, error) {
	if err := migrate(ctx, o.Pool); err != nil {
		return nil, fmt.Errorf("make the tables of River: %w", err)
	}
	d := &Delivery{}
	workers := river.NewWorkers()
	queues := map[string]river.QueueConfig{fleetQueue: {MaxWorkers: 1}}
	byQueue := map[string]func(context.Context){}
	for project, hint := range o.Projects {
		queues[QueueOf(project)] = river.QueueConfig{MaxWorkers: 1}
		byQueue[QueueOf(project)] = hint
	}
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[startArgs]) error {
		byQueue[job.Queue](ctx)
		return nil
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[sweepArgs]) error {
		if _, known := o.Projects[job.Args.Schema]; !known {
			return nil // the row is not ours to believe
		}
		return o.Sweep(ctx, job.Args.Schema)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[fleetArgs]) error {
		schemas, err := o.Fleet(ctx)
		return errors.Join(err, d.due(ctx, schemas))
	}))
	client, err := river.NewClient(riverpgxv5.New(o.Pool), &river.Config{
		Schema: schema, Queues: queues, Workers: workers, FetchCooldown: cooldown, FetchPollInterval: poll,
		CompletedJobRetentionPeriod: kept, DiscardedJobRetentionPeriod: kept, CancelledJobRetentionPeriod: kept,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), // what fails is logged by what a job does
		PeriodicJobs: []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(Every), func() (river.JobArgs, *river.InsertOpts) {
			return fleetArgs{}, &river.InsertOpts{Queue: fleetQueue, MaxAttempts: 1}
		}, &river.PeriodicJobOpts{RunOnStart: true})},
	})
	if err != nil {
		return nil, fmt.Errorf("make a client of River: %w", err)
	}
	d.client = client
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, fmt.Errorf("start the client of River: %w", err)
	}
	return d, nil
}

// due inserts the sweeps of projects, each once a period.
func (d *Delivery) due(ctx context.Context, schemas []string) error {
	if len(schemas) == 0 {
		return nil
	}
	jobs := make([]river.InsertManyParams, len(schemas))
	for i, s := range schemas {
		jobs[i] = river.InsertManyParams{Args: sweepArgs{s}, InsertOpts: &river.InsertOpts{
			Queue: QueueOf(s), MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: Every},
		}}
	}
	_, err := d.client.InsertMany(ctx, jobs)
	return err
}

// Stop waits a moment for what is being done, and ends.
func (d *Delivery) Stop(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, stopWithin)
	defer stop()
	return d.client.Stop(ctx)
}

// migrate makes River's tables, one process at a time.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	turn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer turn.Release()
	const lock = "hashtext('rye river')"
	if _, err := turn.Exec(ctx, "SELECT pg_advisory_lock("+lock+")"); err != nil {
		return err
	}
	defer turn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock("+lock+")") //nolint:errcheck // it ends with the connection
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}
