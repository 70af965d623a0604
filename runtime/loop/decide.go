package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"syscall"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ended is how the work came to its end, before it is judged.
type ended struct {
	err      error          // nil: it ended well
	doing    string         // what the thread was doing
	result   string         // final text
	outputs  map[string]any // of directive_return
	data     json.RawMessage
	blocked  string // error_detail of a directive_return with status error
	warnings []string
	handoff  *thread.Handoff // another thread continues this one; err is nil
	asked    error           // the cancel that is on record; nil: none is
}

// outcome judges the end of the work.
func (r *run) outcome(ctx context.Context, e ended) thread.Outcome {
	// An interrupted call reports its own failure; why it was interrupted is the
	// cause.
	if e.err != nil && ctx.Err() != nil {
		e.err = context.Cause(ctx)
	}
	if errors.As(e.err, new(*thread.SignalError)) {
		e.asked = cancelOnRecord(ctx, r.Store, r.ID)
	}
	return decide(e)
}

// cancelOnRecord is the cancel of a thread, of which a signal was told; nil where none is
// known.
func cancelOnRecord(ctx context.Context, rows store.Registry, id thread.ID) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer stop()
	rec, err := rows.Get(ctx, id)
	if err != nil || rec.CancelRequestedAt.IsZero() {
		return nil
	}
	return rec.CancelCause()
}

// recordWithin bounds the look at the row of a thread that is to end.
const recordWithin = time.Second

// cancelSignal is the first signal of a cancel; a kill begins with another one.
const cancelSignal = "SIGINT"

// decide turns the end of the work into the thread's outcome. It is the only
// place that does.
func decide(e ended) thread.Outcome {
	if e.handoff != nil {
		return thread.Outcome{State: thread.Continued, Handoff: e.handoff, Warnings: e.warnings}
	}
	o := thread.Outcome{
		State: thread.Completed, Result: e.result, Outputs: e.outputs, Data: e.data, Warnings: e.warnings,
	}
	if e.blocked != "" {
		o.State = thread.Error
		o.Error = &thread.Problem{Code: thread.CodeReturned, Message: e.blocked, Doing: e.doing}
	}
	if e.err == nil {
		return o
	}
	o.State, o.Error = thread.Error, &thread.Problem{Code: codeOf(e.err), Message: e.err.Error(), Doing: e.doing}
	var failed *callError
	if errors.As(e.err, &failed) {
		o.Error.Doing = failed.doing()
		o.Error.Passing = failed.passing
	}
	var signal *thread.SignalError
	if errors.As(e.err, &signal) {
		o.Error.Signal = signal.Signal
		// A cancel sends it, and is what somebody did.
		if signal.Signal == cancelSignal {
			o.Error.Message = cmp.Or(e.asked, thread.ErrCancelled).Error()
		} else if e.asked != nil {
			o.Error.Message += "; " + e.asked.Error()
		}
	}
	if errors.Is(e.err, thread.ErrCancelled) || errors.Is(e.err, context.Canceled) {
		o.State = thread.Cancelled
	}
	return o
}

// codeOf is the stable code of what ended a thread.
func codeOf(err error) string {
	var (
		over       *thread.LimitError
		failed     *callError
		full       *limit.ContextFullError
		mute       *muteError
		told       *toldError
		noProvider *provider.NoProviderError
		noModel    *provider.UnknownModelError
		noKey      *provider.KeyError
	)
	switch {
	case errors.As(err, &over):
		return over.Code
	case errors.As(err, &full), errors.As(err, &failed) && failed.rule.Category == config.CategoryContext:
		return "context_full"
	case errors.As(err, &mute):
		return "output_limit"
	case errors.Is(err, errRefused):
		return "model_refused"
	case errors.Is(err, records.ErrLost):
		return "transcript_lost"
	case errors.Is(err, store.ErrAway):
		return thread.CodeStoreAway
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "disk_full"
	case errors.As(err, &told) && told.cause == nil:
		return "failed_by_hook"
	case errors.As(err, &failed) && failed.rule.Category != "":
		return "provider_" + failed.rule.Category
	case errors.As(err, &noProvider), errors.As(err, &noModel), errors.As(err, &noKey):
		return string(tool.CodeNoProvider)
	default:
		return string(action.Fault(err).Code)
	}
}
