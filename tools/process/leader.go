//go:build linux || darwin

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// Leader returns the process that leads its session and was started with all
// entries of mark in its environment, as a thread's process is; 0 when there is
// none. A process of the same user that hides its environment (see [HideMemory]) is
// known by its arguments, those after the program's name: anybody can start one with
// the same.
func Leader(mark, args []string) (int, error) {
	all, err := pids()
	if err != nil {
		return 0, fmt.Errorf("look for a process with %q: %w", mark, err)
	}
	for _, pid := range all {
		if sid, err := unix.Getsid(pid); err == nil && sid == pid && isLeader(pid, mark, args) && !Gone(pid) {
			return pid, nil
		}
	}
	return 0, nil
}

func isLeader(pid int, mark, args []string) bool {
	if _, err := environOf(pid); !errors.Is(err, fs.ErrPermission) {
		return startedWith(pid, mark)
	}
	if unix.Kill(pid, 0) != nil { // it is another user's
		return false
	}
	line, err := argsOf(pid)
	return err == nil && len(line) > 0 && slices.Equal(line[1:], args)
}
