package thread

import (
	"fmt"
	"time"
)

// BusyError says that a thread database could not be had because one process holds
// it and does not go on. Nothing was changed.
type BusyError struct {
	Path   string // the file whose lock was waited for
	Waited time.Duration
	Holder Holder
}

// Holder is the process that keeps others waiting.
type Holder struct {
	Process      // PID is 0 where it is not known who it is
	Near    bool // its number means that process here too
	Stopped bool // it is suspended, and goes on when somebody continues it
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s is held by %s; nothing was changed", e.Path, e.Holder.doing(e.Waited))
}

func (h Holder) doing(waited time.Duration) string {
	who := fmt.Sprintf("process %d", h.PID)
	switch {
	case h.PID == 0:
		who = "a process that the system does not name"
	case !h.Near:
		who = fmt.Sprintf("process %d of host %q, which is another container or machine", h.PID, h.Host)
	case h.Stopped:
		return who + ", which is suspended"
	}
	return fmt.Sprintf("%s, which has finished nothing for %s", who, waited.Round(time.Millisecond))
}

// Hint says how the holder is made to let go.
func (e *BusyError) Hint() string {
	h := e.Holder
	switch {
	case h.PID == 0:
		return "rye-mcp doctor says more; continue or end the process that has the file open"
	case !h.Near:
		return fmt.Sprintf("continue or end process %d where it runs, on host %s", h.PID, h.Host)
	case h.Stopped:
		return fmt.Sprintf("kill -CONT %d lets it go on; when it is a thread's process, rye-mcp threads kill ends it", h.PID)
	}
	return fmt.Sprintf("try again; rye-mcp doctor tells whether process %d still holds it", h.PID)
}
