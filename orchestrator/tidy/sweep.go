package tidy

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/life"
)

// Job is something that a server does for a project from time to time.
type Job struct {
	Name string // for logs
	// Run does it, and says in a few words what it did; empty: nothing. It ends soon after
	// ctx does, and can be repeated after a crash.
	Run func(ctx context.Context) (did string, err error)
}

// Sweep does all jobs once, and returns what they did. Of several processes one does:
// done is false where another is at it. A job that fails does not keep the others.
func (t *Tidier) Sweep(ctx context.Context) (did []string, done bool, err error) {
	hold, err := t.Threads.Life.Lease(sweepLease)
	if errors.Is(err, life.ErrHeld) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("lease of the sweep: %w", err)
	}
	defer func() { err = errors.Join(err, hold.Release()) }()
	var failed []error
	for _, job := range t.jobs() {
		if ctx.Err() != nil {
			break
		}
		what, err := job.Run(ctx)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", job.Name, err))
		}
		if what != "" {
			did = append(did, job.Name+": "+what)
		}
	}
	return did, true, errors.Join(failed...)
}

// jobs are those of this room, and those of others.
func (t *Tidier) jobs() []Job {
	return append([]Job{{Name: "deletions", Run: t.continueJob}}, t.Jobs...)
}

// continueJob goes on with deletions that a crash has cut short.
func (t *Tidier) continueJob(ctx context.Context) (string, error) {
	done, err := t.Continue(ctx, nil)
	if done.Removed == 0 {
		return "", err
	}
	return fmt.Sprintf("removed what was left of %d threads", done.Removed), err
}
