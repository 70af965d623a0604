package process

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// KillLeftovers kills what a session leader that is gone, such as a thread's
// process that was killed, left running in its session: the commands it ran and
// what those started. Only processes that were started with the given variable
// ("NAME=value") in their environment are meant. That tells them from strangers
// when the leader has been gone for long, for its number may have led another
// session since. Of a leader that is still there nothing is killed.
func KillLeftovers(ctx context.Context, leader int, variable string) error {
	if leader <= 1 { // never started, or the first process of the system
		return nil
	}
	for range sweepPasses {
		members, err := sessionMembers(leader)
		if err != nil {
			return fmt.Errorf("list what is left of session %d: %w", leader, err)
		}
		members = slices.DeleteFunc(members, func(pid int) bool { return !startedWith(pid, variable) })
		if len(members) == 0 {
			return nil
		}
		if err := killAll(ctx, members); err != nil {
			return fmt.Errorf("kill what is left of session %d: %w", leader, err)
		}
	}
	return fmt.Errorf("session %d keeps starting processes", leader)
}

// startedWith tells whether a process was started with the variable in its
// environment (proc_pid_environ(5)). When that cannot be known the answer is no.
func startedWith(pid int, variable string) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.Contains(strings.Split(string(environ), "\x00"), variable)
}
