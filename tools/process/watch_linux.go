package process

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// watcher opens a pidfd, which becomes readable when the process ends
// (pidfd_open(2)), and returns the wait for it. PIDFD_NONBLOCK, since Linux
// 5.10, makes Go's poller take the descriptor.
func watcher(pid int) func(context.Context) bool {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil { // no such call, no descriptor left, or gone by now
		return func(ctx context.Context) bool { return poll(ctx, pid) }
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	return func(ctx context.Context) bool {
		ended, err := waitReadable(ctx, file)
		if err != nil && ctx.Err() == nil {
			return poll(ctx, pid)
		}
		return ended
	}
}

// waitReadable waits until file, a pidfd that it closes, is readable or ctx
// ends.
func waitReadable(ctx context.Context, file *os.File) (bool, error) {
	defer func() { _ = file.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = file.Close() }) // wakes Read
	defer stop()
	conn, err := file.SyscallConn()
	if err != nil {
		return false, err
	}
	ended := false
	err = conn.Read(func(fd uintptr) bool {
		ended = readable(int(fd))
		return ended
	})
	return ended, err
}

// readable tells, without waiting, whether the process of a pidfd has ended.
func readable(fd int) bool {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}
