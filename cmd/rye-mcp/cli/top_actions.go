package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/tail"
	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/top"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// byTop is who acts in the terminal view.
const byTop = "a person, with rye-mcp top"

// topActions does what a person wants in the terminal view, as the commands do it.
type topActions struct {
	ctx     context.Context //nolint:containedctx // ends with the program
	sys     System
	project *project
	send    func(tea.Msg)

	calls  sync.WaitGroup // actions; one that was begun is not left half done
	busy   atomic.Int32
	others sync.WaitGroup // what only looks

	looking sync.Mutex
	unlook  context.CancelFunc // ends the looking at one thread
}

func (a *topActions) caller() action.Caller {
	by := atTerminal(a.sys)
	by.By = byTop
	return by
}

// begun counts an action until done is called, and gives it a context that outlives the
// view.
func (a *topActions) begun() (ctx context.Context, done func()) {
	a.calls.Add(1)
	a.busy.Add(1)
	return context.WithoutCancel(a.ctx), func() { a.busy.Add(-1); a.calls.Done() }
}

// explained is what report tells of an error.
func explained(err error) (message, try string) {
	var usage *usageError
	if errors.As(err, &usage) {
		return usage.message, usage.try
	}
	f := tool.AsFault(err)
	return f.Message, advice(f)
}

func failedOutcome(err error) top.Outcome {
	message, try := explained(err)
	return top.Outcome{Error: message, Try: try}
}

// Answer gives an answer to the question that was shown, and to no other.
func (a *topActions) Answer(given top.Answer) top.Outcome {
	ctx, done := a.begun()
	defer done()
	return a.answer(ctx, given, "")
}

func (a *topActions) answer(ctx context.Context, given top.Answer, summary string) top.Outcome {
	asked, err := a.project.control.View.Question(ctx, given.ThreadID)
	if err != nil {
		return failedOutcome(err)
	}
	if asked.QuestionID != given.QuestionID {
		return top.Outcome{Error: fmt.Sprintf("%s asks something else now, so nothing was answered", given.ThreadID), Try: "a shows what it asks"}
	}
	in := operation.ApproveInput{ThreadID: given.ThreadID, Decision: given.Decision, Limits: given.Limits, Summary: summary}
	answered, err := operation.ApproveThread.Run(ctx, a.project.control, a.caller(), in)
	if err != nil {
		return failedOutcome(err)
	}
	return top.Outcome{Said: fmt.Sprintf("%s: %s", answered.ThreadID, answered.Decision)}
}

// Edit lets the person edit the summary of a handoff in their editor, and hands over with
// it.
func (a *topActions) Edit(given top.Answer) tea.Cmd {
	edit := &summaryEdit{actions: a, given: given}
	return tea.Exec(edit, func(err error) tea.Msg {
		if err != nil {
			return top.OutcomeMsg(failedOutcome(err))
		}
		return top.OutcomeMsg(edit.outcome)
	})
}

// summaryEdit runs an editor on the terminal, which the view has let go of.
type summaryEdit struct {
	actions *topActions
	given   top.Answer
	outcome top.Outcome
}

// Run implements tea.ExecCommand.
func (e *summaryEdit) Run() error {
	a := e.actions
	ctx, done := a.begun()
	defer done()
	w, err := a.project.control.View.Question(ctx, e.given.ThreadID)
	if err != nil {
		return err
	}
	ask := approval{sys: a.sys, project: a.project}
	text, err := ask.editSummary(a.ctx, w)
	if err != nil {
		return err
	}
	e.given.Decision = thread.Accept
	e.outcome = a.answer(ctx, e.given, text)
	return nil
}

// SetStdin implements tea.ExecCommand; the editor has the streams of the command.
func (*summaryEdit) SetStdin(io.Reader) {}

// SetStdout implements tea.ExecCommand.
func (*summaryEdit) SetStdout(io.Writer) {}

// SetStderr implements tea.ExecCommand.
func (*summaryEdit) SetStderr(io.Writer) {}

// Cancel stops a thread and everything below it, and shows the receipts.
func (a *topActions) Cancel(id thread.ID) top.Outcome {
	ctx, done := a.begun()
	defer done()
	stopped, err := operation.CancelThread.Run(ctx, a.project.control, a.caller(), operation.StopInput{ThreadIDs: []thread.ID{id}})
	if err != nil {
		return failedOutcome(err)
	}
	var out top.Outcome
	for _, r := range stopped.Receipts {
		how := cmp.Or(r.Error, strings.ReplaceAll(r.How, "_", " "))
		out.Lines = append(out.Lines, fmt.Sprintf("%s  %s, %s, %s", r.ThreadID, r.Status, how, r.Spend))
	}
	if stopped.Success {
		out.Said = fmt.Sprintf("cancelled %s: %s", id, counted(len(stopped.Receipts), "receipt"))
		return out
	}
	out.Error, out.Try = fmt.Sprintf("%s could not be stopped", id), "rye-mcp threads kill "+string(id)
	return out
}

// Steer tells a thread something while it works.
func (a *topActions) Steer(id thread.ID, message string, interrupt bool) top.Outcome {
	ctx, done := a.begun()
	defer done()
	told, err := operation.SteerThread.Run(ctx, a.project.control, a.caller(), operation.SteerInput{ThreadID: id, Message: message, Interrupt: interrupt})
	if err != nil {
		return failedOutcome(err)
	}
	to := cmp.Or(told.ResolvedThreadID, id)
	return top.Outcome{Said: fmt.Sprintf("%s: message %d of those it has not read; it reads it %s", to, told.Position, told.ReadWhen)}
}

// Resume goes on with a thread that has ended.
func (a *topActions) Resume(id thread.ID, message string) top.Outcome {
	ctx, done := a.begun()
	defer done()
	resumed, err := operation.ResumeThread.Run(ctx, a.project.control, a.caller(), operation.ResumeInput{ThreadID: id, Message: message})
	if err != nil {
		return failedOutcome(err)
	}
	out := top.Outcome{Said: fmt.Sprintf("%s continues %s", resumed.NewThreadID, resumed.OldThreadID)}
	for _, warning := range resumed.NewThreadResult.Warnings {
		out.Lines = append(out.Lines, "Warning: "+warning)
	}
	return out
}

const (
	// tailFirst is how much of the end of a transcript is shown at first.
	tailFirst = 512 << 10
	// tailEvents is how many of the last events that is at most.
	tailEvents = 1000
	// tailEvery is the least time between two looks at a transcript: a model may write
	// thousands of pieces a second, and nobody reads them one by one.
	tailEvery = 80 * time.Millisecond
)

// tailInto sends what a thread has done last, and then what it does, until ctx ends. While the
// store is away it is looked for what was written meanwhile.
func tailInto(ctx context.Context, said records.Transcript, id thread.ID, send func(tea.Msg)) {
	var reader tail.Reader
	var pieces []tail.Piece
	see := func(e thread.Event) error {
		pieces = append(pieces, reader.Read(e)...)
		return context.Cause(ctx)
	}
	cursor, err := lastThenOn(said, see)
	written, unwatch := said.Watch()
	defer unwatch()
	backstop := time.NewTicker(backstop)
	defer backstop.Stop()
	pace := time.NewTicker(tailEvery)
	defer pace.Stop()
	for told := false; ctx.Err() == nil; {
		if err != nil && !told {
			message, _ := explained(err)
			pieces = append(pieces, tail.Piece{Kind: tail.Failure, Text: plain.Line("✗ the transcript cannot be read: " + message)})
		}
		if len(pieces) > 0 {
			send(top.TailMsg{ID: id, Pieces: pieces})
			pieces = nil
		}
		if err != nil && (cursor == "" || !threads.StoreIsAway(err)) {
			return
		}
		select {
		case <-written:
		case <-backstop.C:
		case <-ctx.Done():
			return
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			return
		}
		told = err != nil
		cursor, err = drain(said, cursor, see)
	}
}

// lastThenOn sees the end of a transcript, and returns where it goes on.
func lastThenOn(said records.Transcript, see func(thread.Event) error) (cursor string, err error) {
	page, err := transcript.Tail(said, transcript.TailOptions{Last: tailEvents, MaxBytes: tailFirst})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	if err := seeLines(page.Content, see); err != nil {
		return "", err
	}
	return page.Next, nil
}
