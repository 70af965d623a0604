package loop

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ended is how the work came to its end, before it is judged.
type ended struct {
	err     error          // nil: it ended well
	doing   string         // what the thread was doing
	result  string         // final text
	outputs map[string]any // of directive_return
	data    json.RawMessage
	blocked string // error_detail of a directive_return with status error
}

// decide turns the end of the work into the thread's outcome. It is the only
// place that does.
func decide(ctx context.Context, e ended) thread.Outcome {
	o := thread.Outcome{State: thread.Completed, Result: e.result, Outputs: e.outputs, Data: e.data}
	if e.blocked != "" {
		o.State = thread.Error
		o.Error = &thread.Problem{Code: "returned_error", Message: e.blocked}
	}
	if e.err == nil {
		return o
	}
	err := e.err
	// An interrupted call reports its own failure; why it was interrupted is the
	// cause.
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	o.State, o.Error = thread.Error, &thread.Problem{Message: err.Error(), Doing: e.doing}
	var (
		over   *thread.LimitError
		signal *thread.SignalError
		api    *llm.APIError
		full   *limit.ContextFullError
		fault  *tool.Fault
	)
	switch {
	case errors.As(err, &full):
		o.Error.Code = "context_full"
	case errors.As(err, &over):
		o.Error.Code = over.Code
	case errors.As(err, &signal):
		o.State, o.Error.Code, o.Error.Signal = thread.Cancelled, "cancelled", signal.Signal
	case errors.Is(err, thread.ErrCancelled):
		o.State, o.Error.Code = thread.Cancelled, "cancelled"
	case errors.As(err, &api):
		o.Error.Code = "provider_" + string(classify(api).category)
	case errors.As(err, &fault):
		o.Error.Code = string(fault.Code)
	default:
		o.Error.Code = string(tool.CodeInternal)
	}
	return o
}
