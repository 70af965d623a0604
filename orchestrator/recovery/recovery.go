// Package recovery settles threads whose process is gone. A thread is dead when
// its row is not terminal and nobody holds its life lock; that is true from
// the moment the process ends, however it ended, and cannot be confused by a
// reused process id.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// Sweeper finds and settles dead threads of one project.
type Sweeper struct {
	Finisher *finish.Finisher
	Log      zerolog.Logger
	// StopChildren stops the live descendants of a thread that died, by the
	// policy of the project; nil keeps them running.
	StopChildren func(ctx context.Context, id thread.ID) error
	// ExitOf tells how a process ended that this process had started; nil when
	// nothing is known.
	ExitOf func(thread.ID) (process.Exit, bool)
}

// Report says what a sweep did.
type Report struct {
	Looked  int
	Settled []thread.ID
}

// RunOnce examines every thread that is not terminal.
func (s *Sweeper) RunOnce(ctx context.Context) (Report, error) {
	var report Report
	filter := store.Filter{States: []thread.State{thread.Created, thread.Running}, Limit: store.MaxPage}
	for {
		rows, next, err := s.Finisher.Store.List(ctx, filter)
		if err != nil {
			return report, fmt.Errorf("list threads: %w", err)
		}
		for _, rec := range rows {
			report.Looked++
			after, err := s.Examine(ctx, rec)
			if err != nil {
				return report, err
			}
			if after.Status.Terminal() {
				report.Settled = append(report.Settled, rec.ThreadID)
			}
		}
		if next == "" {
			return report, nil
		}
		filter.Cursor = next
	}
}

// Examine returns the row of a thread as it truly is: when its process is gone
// the thread is settled first.
func (s *Sweeper) Examine(ctx context.Context, rec thread.Record) (thread.Record, error) {
	if rec.Status.Terminal() {
		return rec, nil
	}
	dir := folder.Of(s.Finisher.StateDir, rec.ThreadID)
	held, err := process.Held(dir.Lock())
	if err != nil {
		return rec, fmt.Errorf("look at the lock of %s: %w", rec.ThreadID, err)
	}
	if held {
		return rec, nil
	}
	return s.settle(ctx, rec.ThreadID, dir)
}

// settle takes the free lock and ends the thread. Whoever comes second finds
// the lock taken, or the thread settled.
func (s *Sweeper) settle(ctx context.Context, id thread.ID, dir folder.Folder) (thread.Record, error) {
	if err := dir.Make(); err != nil {
		return thread.Record{}, fmt.Errorf("folder of %s: %w", id, err)
	}
	lock, err := process.Acquire(dir.Lock())
	if errors.Is(err, process.ErrLocked) {
		return s.Finisher.Store.Get(ctx, id)
	}
	if err != nil {
		return thread.Record{}, fmt.Errorf("lock %s: %w", id, err)
	}
	defer func() { _ = lock.Release() }()

	rec, err := s.Finisher.Store.Get(ctx, id)
	if err != nil || rec.Status.Terminal() {
		return rec, err
	}
	outcome, cost, err := s.outcomeOf(rec, dir)
	if err != nil {
		return rec, err
	}
	if s.StopChildren != nil {
		if err := s.StopChildren(ctx, id); err != nil {
			return rec, fmt.Errorf("stop the children of %s: %w", id, err)
		}
	}
	s.Log.Info().Str("thread_id", string(id)).Int("pid", rec.PID).Str("status", string(outcome.State)).
		Msg("settled a thread whose process is gone")

	w, err := s.Finisher.OpenTranscript(id)
	if err != nil {
		return rec, err
	}
	defer func() { _ = w.Close() }()
	return s.Finisher.Finish(ctx, id, w, outcome, cost)
}

// outcomeOf decides how a dead thread ended: as it had decided itself, when
// that much had reached the transcript; else cancelled, when somebody had
// asked for that; else in error.
func (s *Sweeper) outcomeOf(rec thread.Record, dir folder.Folder) (thread.Outcome, thread.Cost, error) {
	decided, cost, err := transcript.LastOutcome(dir.Transcript())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return thread.Outcome{}, rec.Cost, fmt.Errorf("read the transcript of %s: %w", rec.ThreadID, err)
	}
	if decided != nil && cost != nil {
		return *decided, *cost, nil
	}
	problem := &thread.Problem{Code: "process_died", Message: thread.ErrDied.Error(), Doing: doing(rec)}
	if why := lastWords(dir.Log()); why != "" {
		problem.Message += ": " + why
	}
	if s.ExitOf != nil {
		if exit, known := s.ExitOf(rec.ThreadID); known {
			problem.Signal = exit.Signal
			problem.Message += describeExit(exit)
		}
	}
	if !rec.CancelRequestedAt.IsZero() {
		problem.Code, problem.Message = "cancelled", "cancelled; the process had to be ended"
		return thread.Outcome{State: thread.Cancelled, Error: problem}, rec.Cost, nil
	}
	return thread.Outcome{State: thread.Error, Error: problem}, rec.Cost, nil
}

func describeExit(exit process.Exit) string {
	if exit.Signal != "" {
		return " (ended by " + exit.Signal + ")"
	}
	return fmt.Sprintf(" (exit code %d)", exit.Code)
}

func doing(rec thread.Record) string {
	if rec.Status == thread.Created {
		return "starting; it had not claimed its row"
	}
	return fmt.Sprintf("turn %d", rec.Cost.Turns+1)
}

// lastWords is the last line of a dead process's log that says why it ended:
// what the Go runtime prints for a panic or a fatal error.
func lastWords(path string) string {
	const tail = 16 << 10
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	buf := make([]byte, min(info.Size(), tail))
	n, _ := f.ReadAt(buf, max(0, info.Size()-tail))
	for line := range strings.Lines(string(buf[:n])) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
	}
	return ""
}
