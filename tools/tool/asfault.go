package tool

import (
	"context"
	"errors"
	"syscall"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// AsFault turns any error into a fault: one that is a fault already stays as
// it is, what the context and the thread vocabulary know gets its code, and
// everything else is [CodeInternal] with its text. It returns nil for nil.
func AsFault(err error) *Fault {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Fault](err); ok && f != nil {
		return f
	}
	if busy, ok := errors.AsType[*thread.BusyError](err); ok {
		return Faultf(CodeBusy, "%w", err).WithHint("%s", busy.Hint()).With("holder_pid", busy.Holder.PID)
	}
	f := Faultf(CodeInternal, "%w", err)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		f.Code = CodeDiskFull
		return f.WithHint("make room on the disk of the project, then call again")
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.Code = CodeTimeout
	case errors.Is(err, context.Canceled), errors.Is(err, thread.ErrCancelled), errors.Is(err, thread.ErrShutdown):
		f.Code = CodeCancelled
	case errors.Is(err, thread.ErrNotFound):
		f.Code = CodeNotFound
	case errors.Is(err, thread.ErrBadID):
		f.Code = CodeBadID
	}
	return f
}
