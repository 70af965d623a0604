//go:build linux || darwin

package process

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit is how a process ended.
type Exit struct {
	Code   int    // exit code; -1 when a signal ended it or nothing is known
	Signal string // name of the signal that ended it, such as SIGKILL; else empty
	Why    string // why whoever has sent the signal did so, where that is known
}

// String returns the end in words, for a log or the result of a thread.
func (e Exit) String() string {
	switch {
	case e.Signal != "" && e.Why != "":
		return "killed by " + e.Signal + ": " + e.Why
	case e.Signal != "":
		return "killed by " + e.Signal
	case e.Code < 0:
		return "exit status unknown"
	default:
		return fmt.Sprintf("exit code %d", e.Code)
	}
}

// exitOf decodes the state of an ended process. The state is nil when it could
// not be waited for, as in a program that ignores SIGCHLD.
func exitOf(state *os.ProcessState) Exit {
	if state == nil {
		return Exit{Code: -1}
	}
	exit := Exit{Code: state.ExitCode()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signal() >= 0 { // -1: it exited
		exit.Signal = signalName(status.Signal())
	}
	return exit
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s)) // real-time signals have no name
}
