package recovery

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// endGrace bounds the wait for a process to end that has let go of its lock: a
// thread's process does so just before it says what went wrong and exits. The
// wait is in vain, and ends with the grace, when the number of a process that
// is long gone has been given to another.
const endGrace = 500 * time.Millisecond

// autopsy says what is known of why a thread's process ended.
func (s *Sweeper) autopsy(ctx context.Context, rec thread.Record, left records.Thread) *thread.Problem {
	ctx, stop := context.WithTimeout(ctx, endGrace)
	defer stop()
	if s.Life.Reach(rec.Process) == life.Near {
		select {
		case <-s.Life.Watch(ctx, rec.Process):
		case <-ctx.Done():
		}
	}
	problem := &thread.Problem{Code: thread.CodeDied, Message: thread.ErrDied.Error(), Doing: doing(rec)}
	if why := lastWords(left.Log()); why != "" {
		problem.Message += ": " + why
	}
	if s.Life.Reach(rec.Process) == life.Elsewhere && rec.Run.Incarnation() != "" {
		problem.Message += " (" + leaseOf(rec) + " has run out)"
		return problem
	}
	if s.ExitOf != nil {
		if exit, known := s.ExitOf(ctx, rec.ThreadID); known {
			problem.Signal = exit.Signal
			problem.Message += " (" + exit.String() + ")"
		}
	}
	return problem
}

// leaseOf names the lease that a run on another machine lives by.
func leaseOf(rec thread.Record) string {
	if rec.Worker == "" {
		return "its lease"
	}
	return "the lease of worker " + rec.Worker
}

// CodeNotHere is the code of a thread that was queued in state that was taken
// over.
const CodeNotHere = "not_here"

// notHere is the end of a thread that was queued by the word of a key that is
// accepted for this place, and whose documents do not name it; nil for any other.
// They may be copies of what was published, so nothing was started for them.
func (s *Sweeper) notHere(rec thread.Record, left records.Thread) *thread.Outcome {
	if rec.Status != thread.Created || rec.CancelRequestedAt.IsZero() {
		return nil
	}
	meta, err := left.Meta().Read()
	if err != nil || meta.Place == s.Finisher.Records.Seal().Place() {
		return nil
	}
	return &thread.Outcome{State: thread.Cancelled, Error: &thread.Problem{
		Code: CodeNotHere,
		Message: "it was queued when this state was taken over, where nothing shows that it was started, and never ran: start " +
			rec.Directive + " again with its inputs, which are in its thread.json",
		Doing: "queued",
	}}
}

func doing(rec thread.Record) string {
	if rec.Status == thread.Created {
		return "starting; it had not claimed its row"
	}
	return fmt.Sprintf("turn %d", rec.Cost.Turns+1)
}

// maxLogTail is how much of the end of a log is read: the stacks that the Go
// runtime prints below its last words can be long.
const maxLogTail = 64 << 10

// lastWords is the line of a dead process's log that says why it ended: what
// the Go runtime prints first for a panic or a fatal error, else the last error
// that the program itself reported before it exited.
func lastWords(log records.Source) string {
	f, err := log.Open()
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	size, err := f.Size()
	if err != nil {
		return ""
	}
	tail := make([]byte, min(size, maxLogTail))
	n, _ := f.ReadAt(tail, size-int64(len(tail))) // cut short, it says less
	return lastWordsIn(string(tail[:n]))
}

func lastWordsIn(log string) string {
	var reported string
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return printable(line)
		}
		if said, ok := strings.CutPrefix(line, "Error: "); ok {
			reported = said
		}
	}
	return printable(reported)
}

// printable keeps a line of a log, which can be anything, fit for a row.
func printable(line string) string {
	const most = 500
	if len(line) > most {
		line = line[:most] + "…"
	}
	return strings.ToValidUTF8(line, "\uFFFD")
}
