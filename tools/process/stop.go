//go:build linux || darwin

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// How tells what it took to stop a process.
type How string

// The ways a process was stopped.
const (
	AlreadyGone How = "already_gone" // it was not there, nothing was signalled
	Interrupted How = "interrupted"  // it ended after SIGINT
	Terminated  How = "terminated"   // it ended after SIGTERM
	Killed      How = "killed"       // it took SIGKILL
)

// killWait is how long a killed process may take to die. It is exceeded only by
// one that hangs inside the kernel.
const killWait = 10 * time.Second

// Ladder holds the patience of [StopGroup].
type Ladder struct {
	Soft time.Duration // how long SIGINT may take; 0 leaves that step out
	Term time.Duration // how long SIGTERM may take; 0 leaves that step out, so that nothing is decided in the moment before the kill
}

// Interrupt sends SIGINT to the process alone: a request to stop what it does.
// The caller has made sure, by the life lock, that the number is still the one
// of the process meant. The error is [os.ErrProcessDone] when there is none.
func Interrupt(pid int) error { return ask(pid, unix.SIGINT) }

// Terminate is [Interrupt] with SIGTERM.
func Terminate(pid int) error { return ask(pid, unix.SIGTERM) }

func ask(pid int, signal unix.Signal) error {
	if err := checkTarget(pid); err != nil {
		return err
	}
	if err := send(unix.Kill, pid, signal); err != nil {
		if errors.Is(err, unix.ESRCH) {
			err = os.ErrProcessDone
		}
		return fmt.Errorf("send %s to process %d: %w", signalName(signal), pid, err)
	}
	return nil
}

// send signals target, and continues it: a suspended process could heed nothing but
// SIGKILL. An error is of the signal alone: a process that it has ended can be gone before
// it is continued.
func send(kill func(int, unix.Signal) error, target int, signal unix.Signal) error {
	err := kill(target, signal)
	if err == nil && signal != unix.SIGKILL {
		_ = kill(target, unix.SIGCONT)
	}
	return err
}

// rung is one step of the ladder.
type rung struct {
	how    How
	target int // a negative one is a process group
	signal unix.Signal
	wait   time.Duration
}

func (l Ladder) rungs(pid int) []rung {
	var rungs []rung
	if l.Soft > 0 {
		rungs = append(rungs, rung{Interrupted, pid, unix.SIGINT, l.Soft})
	}
	if l.Term > 0 {
		rungs = append(rungs, rung{Terminated, -pid, unix.SIGTERM, l.Term})
	}
	return append(rungs, rung{Killed, -pid, unix.SIGKILL, 0}) // StopGroup waits for the end
}

// StopGroup ends a process that leads its session, as those of [Detach] do:
// SIGINT to the process, SIGTERM to its group, SIGKILL to its group, each only
// when the one before had its time. One that is suspended is continued, so that it
// can end in order. When the process has ended, what is left of
// its session is killed too: the commands it ran, which are in groups of their
// own. Processes that it detached have other sessions and are not touched.
//
// Alive tells whether the process is still the one meant; pass a probe of its
// life lock. It is asked before every signal, and when it says no nothing is
// signalled, so that a reused number never hits a stranger.
//
// With an error the process may still be there, and How is the last step that
// was taken; the error is the cause of ctx when that ended.
func StopGroup(ctx context.Context, pid int, alive func() bool, l Ladder) (How, error) {
	if err := checkTarget(pid); err != nil {
		return AlreadyGone, err
	}
	watchCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The watch begins before alive is asked: a yes then also says that the watch
	// is of the right process.
	gone := Watch(watchCtx, pid)
	if !alive() {
		return AlreadyGone, nil
	}
	how, err := climb(ctx, pid, gone, alive, l)
	if err != nil {
		return how, fmt.Errorf("stop process %d: %w", pid, err)
	}
	// Either it ended in the middle of a rung, or it has let go of its lock and is
	// on its way out.
	ended, err := await(ctx, gone, killWait)
	if err == nil && !ended {
		err = fmt.Errorf("still there %s after it was %s", killWait, how)
	}
	if err == nil {
		err = sweepSession(ctx, pid)
	}
	if err != nil {
		return how, fmt.Errorf("stop process %d: %w", pid, err)
	}
	return how, nil
}

// climb takes one rung after the other until the process ends or is no longer
// the one meant, and returns the last rung taken.
func climb(ctx context.Context, pid int, gone <-chan struct{}, alive func() bool, l Ladder) (How, error) {
	how := AlreadyGone
	for _, r := range l.rungs(pid) {
		if !alive() {
			return how, nil
		}
		if err := send(unix.Kill, r.target, r.signal); err != nil {
			if Gone(pid) {
				return how, nil
			}
			return how, fmt.Errorf("send %s: %w", signalName(r.signal), err)
		}
		how = r.how
		if ended, err := await(ctx, gone, r.wait); ended || err != nil {
			return how, err
		}
	}
	return how, nil
}

// await waits for gone, at most for d, and tells whether it came.
func await(ctx context.Context, gone <-chan struct{}, d time.Duration) (bool, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-gone:
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// checkTarget refuses the numbers that kill(2) takes for many processes at
// once (0, -1), and the first process of the system.
func checkTarget(pid int) error {
	if pid <= 1 {
		return fmt.Errorf("process number %d cannot be signalled", pid)
	}
	return nil
}
