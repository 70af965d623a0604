//go:build linux || darwin

package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

var (
	// ErrLocked says that somebody else holds the lock.
	ErrLocked = errors.New("the life lock is held by another process")

	// ErrNotHeld says that a file descriptor does not carry the lock.
	ErrNotHeld = errors.New("the file descriptor does not hold the life lock")

	// ErrReleased says that a lock was used after its release.
	ErrReleased = errors.New("the life lock has been released")
)

// errRetry says that a try to lock met something that passes by itself.
var errRetry = errors.New("the lock file is being probed or was replaced")

// A probe holds its shared lock for some microseconds, so the first waits
// settle nearly every case. All waits together are about two seconds: enough
// for many probing processes on a busy machine, and an end when a prober was
// stopped (SIGSTOP) in the middle of a probe.
const (
	acquireTries   = 200
	acquireWaitMin = 50 * time.Microsecond
	acquireWaitMax = 10 * time.Millisecond
)

// Lock is the life lock of a thread: an exclusive flock(2) on a file of a local
// file system. The lock belongs to the open file description, so [Detach] can
// hand it to a child process without a moment in which nobody holds it, and the
// kernel frees it when the last process that has it is gone, however it died.
//
// A Lock that is no longer reachable may be released by the garbage collector:
// keep it alive with a deferred Release.
type Lock struct {
	file       *os.File
	path       string
	handedOver atomic.Bool // a child has the lock as well
}

// Acquire takes the lock on the file at path, which it creates with mode 0600
// if need be; the folder must exist. It does not wait for a holder: when there
// is one the error is [ErrLocked].
//
// A process that asks [Held] has a shared lock for an instant, and that keeps
// an exclusive one out. Acquire tells the two apart and tries again, for about
// two seconds, while only probes are in its way.
func Acquire(path string) (*Lock, error) {
	wait := acquireWaitMin
	for range acquireTries {
		lock, err := acquireOnce(path)
		if !errors.Is(err, errRetry) {
			return lock, err
		}
		<-time.After(wait)
		wait = min(2*wait, acquireWaitMax)
	}
	return nil, fmt.Errorf("lock %s: %w (tried %d times)", path, errRetry, acquireTries)
}

// Await is Acquire for somebody who waits for the holder. It looks every so often, as a
// lock tells nobody that it is free, until ctx ends; the error is the cause of that then.
// Others that wait too, however many, are no reason to give up.
func Await(ctx context.Context, path string, every time.Duration) (*Lock, error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		lock, err := acquireOnce(path)
		if !errors.Is(err, ErrLocked) && !errors.Is(err, errRetry) {
			return lock, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func acquireOnce(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the life lock: %w", err)
	}
	err = lockExclusive(file)
	// The answer counts only for the file that has the name now.
	if err == nil || errors.Is(err, ErrLocked) {
		if same, statErr := isAt(file.Fd(), path); statErr != nil {
			err = statErr
		} else if !same {
			err = errRetry
		}
	}
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Lock{file: file, path: path}, nil
}

// lockExclusive locks file. When it cannot, it tries a shared lock, which fails
// only against an exclusive one: that is [ErrLocked]. Otherwise just other
// shared locks were in the way, and it returns errRetry.
func lockExclusive(file *os.File) error {
	err := flock(file.Fd(), unix.LOCK_EX)
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	switch err := flock(file.Fd(), unix.LOCK_SH); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrLocked
	case err != nil:
		return err
	}
	if err := flock(file.Fd(), unix.LOCK_UN); err != nil { // see Held
		return err
	}
	return errRetry
}

// Inherit adopts, in a process that [Detach] started, the lock that was handed
// over as file descriptor fd ([LockFD]). It makes the descriptor close-on-exec,
// so that what this process starts does not keep the lock; call it before
// anything is started. It fails, without touching a descriptor that is
// something else, when fd is not the file at path or does not hold the lock
// ([ErrNotHeld], or [ErrLocked] when another process does).
func Inherit(fd uintptr, path string) (*Lock, error) {
	same, err := isAt(fd, path)
	if err != nil {
		return nil, fmt.Errorf("inherit the life lock: file descriptor %d: %w", fd, err)
	}
	if !same {
		return nil, fmt.Errorf("inherit the life lock: %w: file descriptor %d is not %s", ErrNotHeld, fd, path)
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("inherit the life lock: set close-on-exec: %w", err)
	}
	held, err := Held(path)
	if err != nil {
		return nil, fmt.Errorf("inherit the life lock: %w", err)
	}
	if !held {
		return nil, fmt.Errorf("inherit the life lock: %w: nobody holds %s", ErrNotHeld, path)
	}
	// Somebody holds it. Locking again succeeds only for the very description
	// that has the lock, and changes nothing then.
	switch err := flock(fd, unix.LOCK_EX); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, fmt.Errorf("inherit the life lock %s: %w", path, ErrLocked)
	case err != nil:
		return nil, fmt.Errorf("inherit the life lock %s: %w", path, err)
	}
	return &Lock{file: os.NewFile(fd, path), path: path}, nil
}

// Held tells whether somebody, this process included, holds the lock on the
// file at path. A missing file is not held. The probe is a shared lock that is
// dropped at once: it disturbs no holder and no other probe, and [Acquire]
// steps aside for it, so neither ever gives the other a wrong answer.
//
// A holder that is killed while it starts a process leaves the lock to that
// process until its exec, for some microseconds: a caller that has seen a holder die
// ([Watch]) and still gets a yes asks again.
func Held(path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("probe the life lock: %w", err)
	}
	defer func() { _ = file.Close() }() // opened for reading
	err = flock(file.Fd(), unix.LOCK_SH)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("probe the life lock %s: %w", path, err)
	}
	// Closing alone is not enough: a process that is being started right now has
	// a copy of the descriptor, and with it of the lock, until its exec.
	if err := flock(file.Fd(), unix.LOCK_UN); err != nil {
		return false, fmt.Errorf("probe the life lock %s: %w", path, err)
	}
	return false, nil
}

// Release gives up this process's hold; a second Release does nothing. A child
// that [Detach] handed the lock to keeps it.
func (l *Lock) Release() error {
	if l.released() {
		return nil
	}
	// Closing alone would leave the lock to whatever is being started right now:
	// it has a copy of every descriptor until its exec. Unlocking takes the lock
	// from all copies, and so from a child too.
	var unlock error
	if !l.handedOver.Load() {
		unlock = flock(l.file.Fd(), unix.LOCK_UN)
	}
	if err := errors.Join(unlock, l.file.Close()); err != nil {
		return fmt.Errorf("release the life lock: %w", err)
	}
	return nil
}

// Remove is Release of a lock that nobody will ask for again: its file goes with it,
// unless a child has the lock.
func (l *Lock) Remove() error {
	if l.released() || l.handedOver.Load() {
		return l.Release()
	}
	err := os.Remove(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.Release())
}

// RemoveLock removes the file of a lock that nobody holds. One that somebody holds is
// [ErrLocked].
func RemoveLock(path string) error {
	lock, err := Acquire(path)
	if err != nil {
		return err
	}
	return lock.Remove()
}

// released tells whether Release has closed the file; [os.File.Fd] answers with
// a descriptor that cannot be then.
func (l *Lock) released() bool { return l.file.Fd() == ^uintptr(0) }

// Share is the lock as a file for a command ([Command.Files]): nobody else gets the lock
// while the command lives, even when this process is killed. Release takes it from the
// command too.
func (l *Lock) Share() (*os.File, error) {
	fd, err := unix.FcntlInt(l.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("share the lock %s: %w", l.path, err)
	}
	return os.NewFile(uintptr(fd), l.path), nil
}

// Path returns the file that is locked.
func (l *Lock) Path() string { return l.path }

// flock asks for a lock without waiting for it.
func flock(fd uintptr, how int) error {
	for {
		if err := unix.Flock(int(fd), how|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// isAt tells whether the open file fd is the one that path names.
func isAt(fd uintptr, path string) (bool, error) {
	var open, named unix.Stat_t
	if err := unix.Fstat(int(fd), &open); err != nil {
		return false, err
	}
	err := unix.Stat(path, &named)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return open.Dev == named.Dev && open.Ino == named.Ino, nil
}
