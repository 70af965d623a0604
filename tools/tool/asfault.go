package tool

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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
	if path, denied := deniedAt(err); denied {
		return denial(f, path)
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

// deniedAt is the file or folder that the system does not let this user have.
func deniedAt(err error) (path string, denied bool) {
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return "", false
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Path, true
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.New, true
	}
	return "", false
}

// denial says who can do something about it: a person.
func denial(f *Fault, path string) *Fault {
	f.Code = CodeUnsupported
	if errors.Is(f, syscall.EROFS) {
		return f.WithHint("tell the person that the file system of %s is read-only", path).
			WithTry("a copy of the project where it can be written: the file system of %s is read-only", path)
	}
	return f.WithHint("tell the person that rye-mcp may not use %s", path).
		WithTry("ls -la %s shows whose it is; give it to the user that runs rye-mcp, or work in a copy of the project", strconv.Quote(filepath.Dir(path)))
}
