//go:build linux || darwin

package process

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// sweepPasses bounds the hunt for processes that keep starting others while
// they are killed.
const sweepPasses = 10

// killGroup kills what an ended leader left in its process group. The number of
// a leader is not used again while its group has members, so when a process has
// the number, it is a stranger's and the group is empty.
func killGroup(leader int) {
	if Gone(leader) {
		_ = unix.Kill(-leader, unix.SIGKILL) // most often there is nothing left
	}
}

// sweepSession kills what an ended leader left in its session, and returns when
// it is gone.
func sweepSession(ctx context.Context, leader int) error {
	killGroup(leader)
	for range sweepPasses {
		members, err := sessionMembers(leader)
		if err != nil {
			return fmt.Errorf("list what is left of session %d: %w", leader, err)
		}
		if len(members) == 0 {
			return nil
		}
		if err := killAll(ctx, members); err != nil {
			return fmt.Errorf("kill what is left of session %d: %w", leader, err)
		}
	}
	return fmt.Errorf("session %d keeps starting processes", leader)
}

// killAll kills the processes and waits until they are gone.
func killAll(ctx context.Context, pids []int) error {
	watchCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	watches := make([]<-chan struct{}, len(pids))
	for i, pid := range pids {
		watches[i] = Watch(watchCtx, pid)
		_ = unix.Kill(pid, unix.SIGKILL) // gone in the meantime is as good
	}
	for i, gone := range watches {
		ended, err := await(ctx, gone, killWait)
		if err != nil {
			return err
		}
		if !ended {
			return fmt.Errorf("process %d is still there %s after SIGKILL", pids[i], killWait)
		}
	}
	return nil
}

// sessionMembers lists the live processes of a session whose leader has ended.
func sessionMembers(leader int) ([]int, error) {
	if !Gone(leader) {
		return nil, nil // a stranger has the number: see killGroup
	}
	all, err := pids()
	if err != nil {
		return nil, err
	}
	var members []int
	for _, pid := range all {
		if sid, err := unix.Getsid(pid); err == nil && sid == leader && !Gone(pid) {
			members = append(members, pid)
		}
	}
	return members, nil
}
