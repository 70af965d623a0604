package tidy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// Job is something that a server does for a project from time to time.
type Job struct {
	Name string // for logs
	// Run does it, and says in a few words what it did; empty: nothing. It ends soon after
	// ctx does, and can be repeated after a crash.
	Run func(ctx context.Context) (did string, err error)
	// Here says that it is about what lies on this machine: where several machines have the
	// threads, each does it.
	Here bool
}

// Schedule is when servers sweep, and how long threads are kept.
type Schedule struct {
	TTL      time.Duration // since the last use of a thread that has ended; 0: for ever
	Interval time.Duration
	// CompressAfter is how long ago threads have ended whose transcripts are compressed; 0:
	// none are.
	CompressAfter time.Duration
}

// defaultInterval is taken where the settings cannot be read.
const defaultInterval = time.Hour

// schedule reads the settings. With settings that cannot be read nothing expires.
func (t *Tidier) schedule() (Schedule, error) {
	if t.Schedule != nil {
		return t.Schedule()
	}
	s := Schedule{Interval: defaultInterval}
	agent, _, err := t.Settings.Begin().Config.Agent()
	if err != nil {
		return s, err
	}
	if s.Interval, err = ParseAge(agent.Threads.SweepInterval); err != nil || s.Interval <= 0 {
		return Schedule{Interval: defaultInterval}, err
	}
	if agent.Threads.TTL != "" {
		s.TTL, err = ParseAge(agent.Threads.TTL)
	}
	if after := agent.Threads.CompressAfter; after != config.CompressOff && err == nil {
		s.CompressAfter, err = ParseAge(after)
	}
	return s, err
}

// Interval is the time between two sweeps.
func (t *Tidier) Interval() time.Duration {
	s, _ := t.schedule() // the sweep says what is wrong
	return s.Interval
}

// Run goes on with what a crash has cut short, and then sweeps after each interval, until
// ctx ends. Nothing expires in the first interval: nobody who only looks is in a hurry.
func (t *Tidier) Run(ctx context.Context) {
	if did, err := t.continueJob(ctx); err != nil && ctx.Err() == nil {
		t.Threads.Log.Warn().Err(err).Msg("go on with deletions")
	} else if did != "" {
		t.Threads.Log.Info().Msg(did)
	}
	for {
		s, _ := t.schedule() // the sweep says what is wrong
		timer := time.NewTimer(s.Interval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		did, _, err := t.Sweep(ctx)
		t.logSwept(ctx, did, err)
		t.SweepHere(ctx)
	}
}

// RunHere does after each interval what is about this machine, and at once, until ctx ends.
func (t *Tidier) RunHere(ctx context.Context) {
	for {
		t.SweepHere(ctx)
		timer := time.NewTimer(t.Interval())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// logSwept logs what a sweep did.
func (t *Tidier) logSwept(ctx context.Context, did []string, err error) {
	if err != nil && ctx.Err() == nil {
		t.Threads.Log.Warn().Err(err).Msg("sweep")
	}
	if len(did) > 0 {
		t.Threads.Log.Info().Msg("swept: " + strings.Join(did, "; "))
	}
}

// mostPerInterval is how many intervals the time by which threads expire can go forward in
// one: after a pause it catches up, and a clock that jumped by years lets threads expire
// only after that has stood for as many sweeps as their TTL has days.
const mostPerInterval = 24

// Sweep does all jobs once, and returns what they did. Of several processes one does, once
// an interval: done is false otherwise. A job that fails does not keep the others.
func (t *Tidier) Sweep(ctx context.Context) (did []string, done bool, err error) {
	if t.Threads.Records.Seal() == nil { // no thread has been here
		return nil, false, nil
	}
	hold, err := t.Threads.Life.Lease(sweepLease)
	if errors.Is(err, life.ErrHeld) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("lease of the sweep: %w", err)
	}
	defer func() { err = errors.Join(err, hold.Release()) }()
	s, unread := t.schedule()
	// A server that began its interval a moment later must not leave out every other one.
	by, due, err := t.Threads.Store.BeginSweep(ctx, t.Threads.Now(), s.Interval*9/10, s.Interval*mostPerInterval)
	if err != nil || !due {
		return nil, false, err
	}
	did, err = t.do(ctx, t.jobs(s, by), func(j Job) bool { return !t.apart(j) })
	return did, true, errors.Join(unread, err)
}

// apart reports whether each machine does a job for itself.
func (t *Tidier) apart(j Job) bool { return j.Here && t.Threads.Fleet != nil }

// hereLease is of who sweeps what lies on this machine.
const hereLease = "sweep-here"

// SweepHere does the jobs that each of several machines does for itself, unless another process
// of this one is at it.
func (t *Tidier) SweepHere(ctx context.Context) {
	if t.Threads.Fleet == nil || t.Threads.Records.Seal() == nil {
		return
	}
	hold, err := t.Threads.Life.Lease(hereLease)
	if errors.Is(err, life.ErrHeld) {
		return
	}
	if err != nil {
		t.logSwept(ctx, nil, fmt.Errorf("lease of the sweep: %w", err))
		return
	}
	did, err := t.do(ctx, t.Jobs, t.apart)
	t.logSwept(ctx, did, errors.Join(err, hold.Release()))
}

// do does the jobs that are wanted, and returns what they did. One that fails does not keep the
// others.
func (t *Tidier) do(ctx context.Context, jobs []Job, wanted func(Job) bool) (did []string, err error) {
	var failed []error
	for _, job := range jobs {
		if ctx.Err() != nil {
			break
		}
		if !wanted(job) {
			continue
		}
		what, err := job.Run(ctx)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", job.Name, err))
		}
		if what != "" {
			did = append(did, job.Name+": "+what)
		}
	}
	return did, errors.Join(failed...)
}

// jobs are those of this room, and those of others.
func (t *Tidier) jobs(s Schedule, by time.Time) []Job {
	jobs := []Job{{Name: "deletions", Run: t.continueJob}}
	if s.TTL > 0 {
		jobs = append(jobs, Job{Name: "ttl", Run: func(ctx context.Context) (string, error) { return t.expire(ctx, by.Add(-s.TTL)) }})
	}
	if s.CompressAfter > 0 {
		jobs = append(jobs, Job{Name: "transcripts", Run: func(ctx context.Context) (string, error) {
			return t.compressJob(ctx, by.Add(-s.CompressAfter))
		}})
	}
	jobs = append(jobs, Job{Name: "vacuum", Run: t.vacuumJob})
	return append(jobs, t.Jobs...)
}

// continueJob goes on with deletions that a crash has cut short.
func (t *Tidier) continueJob(ctx context.Context) (string, error) {
	done, err := t.Continue(ctx, nil)
	if done.Removed == 0 {
		return "", err
	}
	return fmt.Sprintf("removed what was left of %d threads", done.Removed), err
}

// expire deletes the threads that were not used since a time, some at a time.
func (t *Tidier) expire(ctx context.Context, until time.Time) (string, error) {
	var sum expiredSum
	for ctx.Err() == nil {
		found, err := t.expired(ctx, policy{until: until})
		if err != nil {
			return sum.told(), err
		}
		if len(found.sets) == 0 {
			break
		}
		with := t.goesWith(ctx, found.sets...)
		gone, err := t.deleteSets(ctx, found.sets)
		if len(gone) < len(found.sets) {
			with = t.goesWith(ctx, gone...)
		}
		sum.add(members(gone), with)
		if err != nil {
			return sum.told(), err
		}
		if _, err := t.Continue(ctx, nil); err != nil || len(gone) == 0 {
			return sum.told(), err
		}
	}
	return sum.told(), nil
}

// expiredSum is what a sweep deleted.
type expiredSum struct {
	threads int
	with    along
}

func (s *expiredSum) add(threads int, with along) {
	if threads > 0 {
		s.threads, s.with = s.threads+threads, s.with.and(with)
	}
}

func (s *expiredSum) told() string {
	if s.threads == 0 {
		return ""
	}
	return strings.Join(append([]string{fmt.Sprintf("deleted %d threads", s.threads)}, s.with.told()...), ", ")
}

// vacuumJob gives back what is in no use, where it is worth it and can be done in parts.
func (t *Tidier) vacuumJob(ctx context.Context) (string, error) {
	parts, err := t.Threads.Store.Vacuum(ctx, false)
	var given int64
	for _, part := range parts {
		given += part.Before - part.After
	}
	if given < worthTelling {
		return "", err
	}
	return fmt.Sprintf("gave back %d MB", given>>20), err
}

// worthTelling is how many bytes a vacuum gives back that is told.
const worthTelling = 1 << 20
