// Package delivery carries hints and periodic work to the workers of a fleet by River, on the
// same PostgreSQL. A hint is inserted in the transaction that makes a thread startable, by a
// trigger of its project's schema; the rows alone say what is to be started, and in which
// order. Periodic work is inserted by River's elected leader and done by one worker.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
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
	Projects map[string]func()
	// Sweep does periodic work of a project of this worker, by its schema.
	Sweep func(ctx context.Context, schema string) error
	// Fleet does what is due once for all, and returns the schemas of the projects that have
	// a worker, whose sweeps are then due.
	Fleet func(context.Context) ([]string, error)
	// Mirrors are the ids of the mirrors of a project of this worker, of which any machine may
	// have the settings; sending to them is due after each of its sweeps.
	Mirrors func(ctx context.Context, schema string) ([]string, error)
	// Mirror sends what is due of a project to the mirror that this worker has, see
	// [Delivery.Serve].
	Mirror func(ctx context.Context, schema string) error
}

// Delivery is a running client of River.
type Delivery struct {
	client *river.Client[pgx.Tx]

	mu     sync.Mutex
	served map[string]string // the queues of mirrors, by project schemas
}

// QueueOf is the queue of a project by its schema.
func QueueOf(projectSchema string) string {
	return "p_" + projectSchema[max(0, len(projectSchema)-hashLength):]
}

// MirrorQueue is the queue of a mirror of a project; migration 0008 makes the same name.
func MirrorQueue(projectSchema, mirror string) string {
	return "m_" + projectSchema[max(0, len(projectSchema)-hashLength):] + "_" + mirror[:min(len(mirror), hashLength)]
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

type mirrorArgs struct {
	Schema string `json:"schema"`
}

// Kind implements [river.JobArgs].
func (mirrorArgs) Kind() string { return "mirror" }

type fleetArgs struct{}

// Kind implements [river.JobArgs].
func (fleetArgs) Kind() string { return "fleet" }

// Start brings River's tables up to date, and begins to work. A hint that has come before is
// delivered, too.
func Start(ctx context.Context, o Options) (*Delivery, error) {
	if err := migrate(ctx, o.Pool); err != nil {
		return nil, fmt.Errorf("make the tables of River: %w", err)
	}
	d := &Delivery{served: map[string]string{}}
	queues := map[string]river.QueueConfig{fleetQueue: {MaxWorkers: 1}}
	byQueue := map[string]func(){}
	for project, hint := range o.Projects {
		queues[QueueOf(project)] = river.QueueConfig{MaxWorkers: 1}
		byQueue[QueueOf(project)] = hint
	}
	client, err := river.NewClient(riverpgxv5.New(o.Pool), &river.Config{
		Schema: schema, Queues: queues, Workers: d.workers(o, byQueue), FetchCooldown: cooldown, FetchPollInterval: poll,
		CompletedJobRetentionPeriod: kept, DiscardedJobRetentionPeriod: kept, CancelledJobRetentionPeriod: kept,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), // the work of a job logs its failures
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

// workers do the jobs. A row is not ours to believe: what it names counts only as far as this
// worker has it.
func (d *Delivery) workers(o Options, byQueue map[string]func()) *river.Workers {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[startArgs]) error {
		if hint := byQueue[job.Queue]; hint != nil {
			hint()
		}
		return nil
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[sweepArgs]) error {
		if _, known := o.Projects[job.Args.Schema]; !known {
			return nil
		}
		return errors.Join(o.Sweep(ctx, job.Args.Schema), d.mirrorsDue(ctx, o, job.Args.Schema))
	}))
	river.AddWorker(workers, &mirrorWorker{send: func(ctx context.Context, queue string) error {
		schema, known := d.mirrorOf(queue)
		if !known {
			return nil
		}
		return o.Mirror(ctx, schema)
	}})
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[fleetArgs]) error {
		schemas, err := o.Fleet(ctx)
		return errors.Join(err, d.due(ctx, schemas))
	}))
	return workers
}

// mirrorWorker sends to mirrors. The next job sends what is left when the time of this one
// is over.
type mirrorWorker struct {
	river.WorkerDefaults[mirrorArgs]

	send func(ctx context.Context, queue string) error
}

// sendWithin bounds one job, of which one server that was away for long can have much.
const sendWithin = 30 * time.Minute

// Timeout implements [river.Worker].
func (*mirrorWorker) Timeout(*river.Job[mirrorArgs]) time.Duration { return sendWithin }

// Work implements [river.Worker].
func (w *mirrorWorker) Work(ctx context.Context, job *river.Job[mirrorArgs]) error {
	return w.send(ctx, job.Queue)
}

// Serve has this worker send to a mirror of one of its projects, and to no other one; empty:
// to none. One call is made at a time. It waits for what is being sent to the one before.
func (d *Delivery) Serve(ctx context.Context, projectSchema, mirror string) error {
	queue := ""
	if mirror != "" {
		queue = MirrorQueue(projectSchema, mirror)
	}
	before := d.serves(projectSchema, queue)
	if before == queue {
		return nil
	}
	if before != "" {
		if err := d.client.Queues().Remove(ctx, before); err != nil {
			d.serves(projectSchema, before) // it is tried again
			return fmt.Errorf("leave the jobs of a mirror to others: %w", err)
		}
	}
	if queue == "" {
		return nil
	}
	if err := d.client.Queues().Add(queue, river.QueueConfig{MaxWorkers: 1}); err != nil {
		d.serves(projectSchema, "")
		return fmt.Errorf("take the jobs of a mirror: %w", err)
	}
	return nil
}

// serves notes which queue of mirrors is served of a project, and returns which one was.
func (d *Delivery) serves(projectSchema, queue string) (before string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before = d.served[projectSchema]
	d.served[projectSchema] = queue
	return before
}

// mirrorOf is the project of which a queue has the jobs of a mirror that this worker serves.
func (d *Delivery) mirrorOf(queue string) (schema string, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for schema, served := range d.served {
		if served == queue {
			return schema, true
		}
	}
	return "", false
}

// mirrorsDue inserts a job for each mirror of a project, unless one waits already.
func (d *Delivery) mirrorsDue(ctx context.Context, o Options, schema string) error {
	if o.Mirrors == nil {
		return nil
	}
	mirrors, err := o.Mirrors(ctx, schema)
	if err != nil || len(mirrors) == 0 {
		return err
	}
	jobs := make([]river.InsertManyParams, len(mirrors))
	for i, mirror := range mirrors {
		jobs[i] = river.InsertManyParams{Args: mirrorArgs{schema}, InsertOpts: &river.InsertOpts{
			Queue: MirrorQueue(schema, mirror), MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByQueue: true, ByState: []rivertype.JobState{
				rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
			}},
		}}
	}
	_, err = d.client.InsertMany(ctx, jobs)
	return err
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
