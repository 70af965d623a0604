//go:build linux || darwin

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func wantHeld(t *testing.T, path string, want bool) {
	t.Helper()
	held, err := Held(path)
	must(t, err)
	if held != want {
		t.Fatalf("held %v, want %v", held, want)
	}
}

func TestLockIsExclusive(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	wantHeld(t, path, false) // no file yet

	lock, err := Acquire(path)
	must(t, err)
	if lock.Path() != path {
		t.Errorf("path %q", lock.Path())
	}
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	wantHeld(t, path, true)
	if _, err := Acquire(path); !errors.Is(err, ErrLocked) {
		t.Fatalf("second lock: %v", err)
	}
	wantHeld(t, path, true) // the refused one disturbed nothing

	must(t, lock.Release())
	must(t, lock.Release())
	wantHeld(t, path, false)
	again, err := Acquire(path)
	must(t, err)
	must(t, lock.Release()) // a late release must not free the next holder's lock
	wantHeld(t, path, true)
	must(t, again.Release())
}

// TestRemove: a lock goes with its file, and of several who take and remove it at once
// one has it at a time.
func TestRemove(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := Acquire(path)
	must(t, err)
	if err := RemoveLock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("somebody else's is removed: %v", err)
	}
	wantHeld(t, path, true)
	must(t, lock.Remove())
	must(t, lock.Remove())
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
	var holders atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				lock, err := Acquire(path)
				if errors.Is(err, ErrLocked) {
					continue
				}
				if err != nil || holders.Add(1) != 1 {
					t.Errorf("%d have it, %v", holders.Load(), err)
					return
				}
				holders.Add(-1)
				if err := lock.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	must(t, RemoveLock(path)) // made, and removed
	wantHeld(t, path, false)
}

func TestAcquireNeedsAFolder(t *testing.T) {
	t.Parallel()
	_, err := Acquire(filepath.Join(t.TempDir(), "missing", "lock"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("error %v", err)
	}
}

func TestAcquireLocksTheFileThatHasTheName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	old, err := Acquire(path)
	must(t, err)
	must(t, os.Remove(path))
	fresh, err := Acquire(path)
	must(t, err)
	wantHeld(t, path, true)
	must(t, fresh.Release())
	wantHeld(t, path, false)
	must(t, old.Release())
}

// A prober that was stopped in the middle of its probe must not look like a
// holder, nor keep Acquire for ever.
func TestAcquireGivesUpOnAStuckProbe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	probe, err := os.Create(path)
	must(t, err)
	defer func() { must(t, probe.Close()) }()
	must(t, flock(probe.Fd(), unix.LOCK_SH))

	_, err = Acquire(path)
	if !errors.Is(err, errRetry) || errors.Is(err, ErrLocked) {
		t.Fatalf("error %v", err)
	}
	must(t, flock(probe.Fd(), unix.LOCK_UN))
	lock, err := Acquire(path)
	must(t, err)
	must(t, lock.Release())
}

func TestLockHandedToChild(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	path := hub.path("lock")
	lock, err := Acquire(path)
	must(t, err)
	started, err := Detach(hub.helper().spec("child", lock))
	must(t, err)
	child := hub.peer("child")
	child.want("inherit "+path, "ok")

	must(t, lock.Release())
	wantHeld(t, path, true)
	if _, err := Acquire(path); !errors.Is(err, ErrLocked) {
		t.Fatalf("lock held by the child: %v", err)
	}
	child.kill()
	arrives(t, "end of the child", started.Done())
	wantHeld(t, path, false)
	if got := started.Exit(); got != (Exit{Code: -1, Signal: "SIGKILL"}) {
		t.Errorf("exit %v", got)
	}
}

func TestLockSurvivesItsStarter(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	path := hub.path("lock")
	started, err := Detach(hub.helper().spec("starter", nil))
	must(t, err)
	starter := hub.peer("starter")
	pid, err := strconv.Atoi(starter.ask("lock+detach " + path + " thread"))
	must(t, err)
	thread := hub.peer("thread")
	if thread.pid != pid {
		t.Fatalf("pid %d, started %d", thread.pid, pid)
	}
	starter.kill()
	arrives(t, "end of the starter", started.Done())
	wantHeld(t, path, true) // before the child has adopted it
	thread.want("inherit "+path, "ok")
	wantHeld(t, path, true)

	gone := Watch(t.Context(), pid)
	thread.send("exit 0")
	arrives(t, "end of a process that is no child", gone)
	wantHeld(t, path, false)
}

func TestLockIsNotKeptByToolsOfTheChild(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	path := hub.path("lock")
	lock, err := Acquire(path)
	must(t, err)
	started, err := Detach(hub.helper().spec("thread", lock))
	must(t, err)
	must(t, lock.Release())
	thread := hub.peer("thread")
	thread.want("inherit "+path, "ok")
	thread.want("start tool", "ok")
	tool := hub.peer("tool")

	thread.kill()
	arrives(t, "end of the thread", started.Done())
	wantHeld(t, path, false)
	tool.want("ping", "pong")
	tool.kill()
}

func TestInherit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := Acquire(path)
	must(t, err)
	fd, err := unix.FcntlInt(lock.file.Fd(), unix.F_DUPFD, 0) // as a child gets it: not close-on-exec
	must(t, err)
	heir, err := Inherit(uintptr(fd), path)
	must(t, err)
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	must(t, err)
	if flags&unix.FD_CLOEXEC == 0 {
		t.Error("the descriptor survives exec")
	}
	lock.handedOver.Store(true)
	must(t, lock.Release())
	wantHeld(t, path, true)
	must(t, heir.Release())
	wantHeld(t, path, false)
}

func TestInheritRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	open := func(path string) *os.File {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		must(t, err)
		t.Cleanup(func() { must(t, file.Close()) }) // fails if Inherit closed it
		return file
	}
	same, other := open(path), open(path+".other")

	refuse := func(what string, fd uintptr, want error) {
		t.Helper()
		if _, err := Inherit(fd, path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	refuse("nobody holds the lock", same.Fd(), ErrNotHeld)
	wantHeld(t, path, false)
	lock, err := Acquire(path)
	must(t, err)
	refuse("somebody else holds the lock", same.Fd(), ErrLocked)
	refuse("another file", other.Fd(), ErrNotHeld)
	refuse("no file", 1<<20, unix.EBADF)
	must(t, lock.Release())
	must(t, os.Remove(path))
	refuse("the file has lost its name", same.Fd(), ErrNotHeld)
}

// Await has the lock as soon as it is free, however many wait for it, and gives up with
// the cause of its context, leaving nothing.
func TestAwait(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Acquire(path)
	must(t, err)
	why := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	if _, err := Await(ctx, path, time.Millisecond); !errors.Is(err, why) {
		t.Errorf("a lock that somebody holds: %v", err)
	}
	if _, err := Await(t.Context(), filepath.Join(path, "none"), time.Millisecond); err == nil {
		t.Error("a lock that cannot be made")
	}
	var holders atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			lock, err := Await(t.Context(), path, time.Millisecond)
			if err != nil || holders.Add(1) != 1 {
				t.Errorf("%d have it, %v", holders.Load(), err)
				return
			}
			holders.Add(-1)
			if err := lock.Release(); err != nil {
				t.Error(err)
			}
		})
	}
	must(t, held.Release())
	all.Wait()
	wantHeld(t, path, false)
}
