package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The times of a lease. A worker kills what it runs at two thirds of TTL without a renewal.
const (
	TTL  = 5 * time.Second
	Beat = 1500 * time.Millisecond
	// kept is how long the row of a worker that is gone is shown.
	kept = 24 * time.Hour
)

// Fleet are the workers of one database.
type Fleet struct {
	Pool *pgxpool.Pool
	// TTL is how long a lease lasts without a renewal, Beat after which time it is renewed;
	// 0 stands for the constants.
	TTL, Beat time.Duration
	// Clock is the worker's own, of which only differences count; nil: one that nobody sets,
	// and that counts the time while the machine sleeps, where the system has such a clock.
	Clock func() time.Time
}

func (f *Fleet) now() time.Time {
	if f.Clock != nil {
		return f.Clock()
	}
	return Uptime()
}

func (f *Fleet) ttl() time.Duration {
	if f.TTL > 0 {
		return f.TTL
	}
	return TTL
}

// Renewal is after which time a lease is renewed.
func (f *Fleet) Renewal() time.Duration {
	if f.Beat > 0 {
		return f.Beat
	}
	return Beat
}

// Worker is what a worker says of itself.
type Worker struct {
	Name    string
	Process thread.Process
	Version string
	// Slots is how many threads it runs at the same time; 0: it is no worker, and has its lease
	// for one run.
	Slots    int
	Projects []string // by the names under which the store keeps them
	Offer
	// Machine names its machine and user, as [thread.Workspace] does; without slots: where its
	// locks are seen. Empty: an older version does not say.
	Machine string
	// Former is the incarnation that the same worker had before: its place is taken over
	// though its lease has not run out. Empty: there was none.
	Former thread.Incarnation
}

// Seen is a worker as the fleet knows it.
type Seen struct {
	Worker
	Incarnation thread.Incarnation
	StartedAt   time.Time
	LeaseUntil  time.Time
	Draining    bool
	Alive       bool // its lease has not run out
	// Lacks are the commits that its checkouts lack and workspaces of queued threads build upon.
	Lacks []string
}

// NameTakenError says that a worker of that name is alive.
type NameTakenError struct {
	Name, Host string
	PID        int
	For        time.Duration // until its lease runs out, unless it is renewed
}

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("a worker named %q is at work on host %q (process %d); its lease runs for another %s unless it is renewed",
		e.Name, e.Host, e.PID, e.For.Round(100*time.Millisecond))
}

// Try is what a person can do about it.
func (e *NameTakenError) Try() string {
	return "give this worker another --name, or stop the other one and start this one again"
}

// maxTries is how often a worker tries to join: for an incarnation that exists already, and
// for a name that is given up at that moment.
const maxTries = 3

// Join takes a lease. The error is a *[NameTakenError] while a worker of that name has one.
func (f *Fleet) Join(ctx context.Context, w Worker) (*Lease, error) {
	var last error
	for range maxTries {
		l := &Lease{fleet: f, Worker: w, Incarnation: thread.NewIncarnation(), lost: make(chan struct{}), renewed: f.now()}
		joined, err := l.join(ctx)
		if err != nil {
			return nil, fmt.Errorf("join the fleet as worker %q: %w", w.Name, err)
		}
		if joined {
			return l, nil
		}
		if last = f.holderOf(ctx, w.Name); last != nil {
			return nil, last
		}
	}
	return nil, fmt.Errorf("join the fleet as worker %q: others take the name", w.Name)
}

// join writes the row of a worker, in the place of one whose lease has run out.
func (l *Lease) join(ctx context.Context) (bool, error) {
	ctx, stop := context.WithTimeout(ctx, l.fleet.ttl())
	defer stop()
	w := l.Worker
	done, err := l.fleet.Pool.Exec(ctx, `INSERT INTO rye.workers
	(name, incarnation, host, boot_id, pid, version, slots, projects, providers, lease_until, settings, able, machine)
	SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp() + $10::bigint * interval '1 millisecond', $12, $13, $14
	WHERE NOT EXISTS (SELECT FROM rye.workers WHERE incarnation = $2)
	ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, host = excluded.host, boot_id = excluded.boot_id,
		pid = excluded.pid, version = excluded.version, slots = excluded.slots, projects = excluded.projects,
		machine = excluded.machine, lacks = excluded.lacks, settings = excluded.settings, able = excluded.able, providers = excluded.providers, lease_until = excluded.lease_until, started_at = clock_timestamp(), draining = false
	WHERE workers.lease_until <= clock_timestamp() OR workers.incarnation = $11`,
		w.Name, string(l.Incarnation), w.Process.Host, w.Process.Boot, w.Process.PID, w.Version, w.Slots,
		orEmpty(w.Projects), w.Providers(), l.fleet.ttl().Milliseconds(), string(w.Former), orEmpty(w.Settings), w.able(), w.Machine)
	return err == nil && done.RowsAffected() == 1, err
}

// orEmpty is a list that is never NULL.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// holderOf says who has a name, as an error; nil when nobody has it any more.
func (f *Fleet) holderOf(ctx context.Context, name string) error {
	taken := &NameTakenError{Name: name}
	var left int64
	err := f.Pool.QueryRow(ctx, `SELECT host, pid, (extract(epoch FROM lease_until - clock_timestamp()) * 1000)::bigint
	FROM rye.workers WHERE name = $1 AND lease_until > clock_timestamp()`, name).Scan(&taken.Host, &taken.PID, &left)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look who is worker %q: %w", name, err)
	}
	taken.For = time.Duration(left) * time.Millisecond
	return taken
}

// Alive reports whether the lease of an incarnation has not run out. One that the fleet does
// not know has none. It is false for that of a run of this machine (empty: none): of those the
// locks here say all.
func (f *Fleet) Alive(ctx context.Context, i thread.Incarnation, here string) (alive bool, err error) {
	err = f.Pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM rye.workers
	WHERE incarnation = $1 AND lease_until > clock_timestamp() AND (slots > 0 OR machine = '' OR machine <> $2))`, string(i), here).Scan(&alive)
	if err != nil {
		return false, fmt.Errorf("look at a lease: %w", err)
	}
	return alive, nil
}

// Leases are the incarnations whose lease has not run out.
func (f *Fleet) Leases(ctx context.Context) (map[thread.Incarnation]bool, error) {
	rows, err := f.Pool.Query(ctx, `SELECT incarnation FROM rye.workers WHERE lease_until > clock_timestamp()`)
	if err != nil {
		return nil, fmt.Errorf("look at the leases of workers: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look at the leases of workers: %w", err)
	}
	alive := make(map[thread.Incarnation]bool, len(names))
	for _, name := range names {
		alive[thread.Incarnation(name)] = true
	}
	return alive, nil
}

// Schema is that of a project.
func (f *Fleet) Schema(ctx context.Context, project string) (schema string, err error) {
	err = f.Pool.QueryRow(ctx, `SELECT schema_name FROM rye.projects WHERE name = $1`, project).Scan(&schema)
	if err != nil {
		return "", fmt.Errorf("find the tables of project %q: %w", project, err)
	}
	return schema, nil
}

// Served are the schemas of the projects that a worker is alive for.
func (f *Fleet) Served(ctx context.Context) ([]string, error) {
	rows, err := f.Pool.Query(ctx, `SELECT schema_name FROM rye.projects WHERE name IN (
	SELECT unnest(projects) FROM rye.workers WHERE slots > 0 AND lease_until > clock_timestamp())`)
	if err != nil {
		return nil, fmt.Errorf("list the projects that have workers: %w", err)
	}
	schemas, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list the projects that have workers: %w", err)
	}
	return schemas, nil
}

// Serves reports whether a worker is alive that takes threads of a project.
func (f *Fleet) Serves(ctx context.Context, project string) (served bool, err error) {
	err = f.Pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM rye.workers
	WHERE $1 = ANY (projects) AND slots > 0 AND NOT draining AND lease_until > clock_timestamp())`, project).Scan(&served)
	if err != nil {
		return false, fmt.Errorf("look for workers of project %q: %w", project, err)
	}
	return served, nil
}

// Providers are those that the workers can use which take threads of a project, sorted;
// served is false where there is no such worker.
func (f *Fleet) Providers(ctx context.Context, project string) (able []string, served bool, err error) {
	err = f.Pool.QueryRow(ctx, `SELECT coalesce(array_agg(DISTINCT provider ORDER BY provider) FILTER (WHERE provider IS NOT NULL), '{}'), count(*) > 0
	FROM rye.workers LEFT JOIN LATERAL jsonb_array_elements_text(CASE jsonb_typeof(able -> $1) WHEN 'array' THEN able -> $1 END) AS provider ON true
	WHERE $1 = ANY (projects) AND slots > 0 AND NOT draining AND lease_until > clock_timestamp()`, project).Scan(&able, &served)
	if err != nil {
		return nil, false, fmt.Errorf("look which providers the workers of project %q can use: %w", project, err)
	}
	return able, served, nil
}

// Workers are those of the fleet that take threads, by name, with those that are gone since
// a day at most.
func (f *Fleet) Workers(ctx context.Context) ([]Seen, error) {
	rows, err := f.Pool.Query(ctx, `SELECT name, incarnation, host, boot_id, pid, version, slots, projects, settings, able,
		started_at, lease_until, draining, lease_until > clock_timestamp(), machine, lacks
	FROM rye.workers WHERE slots > 0 ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	seen, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Seen, err error) {
		var able []byte
		err = row.Scan(&s.Name, &s.Incarnation, &s.Process.Host, &s.Process.Boot, &s.Process.PID, &s.Version, &s.Slots, &s.Projects, &s.Settings,
			&able, &s.StartedAt, &s.LeaseUntil, &s.Draining, &s.Alive, &s.Machine, &s.Lacks)
		if json.Unmarshal(able, &s.Able) != nil {
			s.Able = nil // nobody who has joined has written it
		}
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	return seen, nil
}

// Forget takes away the rows of those that are gone for long, and returns how many.
func (f *Fleet) Forget(ctx context.Context) (int, error) {
	done, err := f.Pool.Exec(ctx, `DELETE FROM rye.workers
	WHERE lease_until < clock_timestamp() - CASE WHEN slots > 0 THEN $1::bigint ELSE $2::bigint END * interval '1 millisecond'`,
		kept.Milliseconds(), f.ttl().Milliseconds())
	if err != nil {
		return 0, fmt.Errorf("forget workers that are gone: %w", err)
	}
	return int(done.RowsAffected()), nil
}
