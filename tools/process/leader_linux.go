package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Leader returns the process that leads its session and was started with all
// entries of mark in its environment, as a thread's process is; 0 when there is
// none. A process that hides its environment (see [HideMemory]) is known by its
// arguments, those after the program's name.
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
	if _, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); !errors.Is(err, fs.ErrPermission) {
		return startedWith(pid, mark)
	}
	// Everybody may read this (proc_pid_cmdline(5)).
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(line), "\x00")
	return after == strings.Join(args, "\x00")+"\x00"
}
