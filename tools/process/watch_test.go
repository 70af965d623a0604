//go:build linux || darwin

package process

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// startChild starts a helper as a child that nobody waits for.
func startChild(t *testing.T, h *hub, name string) (*exec.Cmd, *peer) {
	t.Helper()
	cmd := exec.Command(executable())
	cmd.Env = helperEnv(h.socket, name)
	must(t, cmd.Start())
	return cmd, h.peer(name)
}

// waysToWatch are all implementations, whatever this system would choose.
func waysToWatch(pid int) map[string]func(context.Context) bool {
	return map[string]func(context.Context) bool{
		"system": watcher(pid),
		"poll":   func(ctx context.Context) bool { return poll(ctx, pid) },
	}
}

func TestWatchSeesAZombie(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	cmd, child := startChild(t, hub, "child")
	gone := Watch(t.Context(), child.pid)
	waits := waysToWatch(child.pid)
	if Gone(child.pid) {
		t.Error("gone while it lives")
	}
	select {
	case <-gone:
		t.Error("the watch ended while it lives")
	default:
	}

	child.send("exit 0")
	arrives(t, "end", gone)
	for name, wait := range waits {
		if !wait(t.Context()) {
			t.Errorf("%s: the end was not seen", name)
		}
	}
	if err := syscall.Kill(child.pid, 0); err != nil {
		t.Errorf("not a zombie: %v", err)
	}
	if !Gone(child.pid) {
		t.Error("a zombie counts as alive")
	}
	arrives(t, "end of a watch on a zombie", Watch(t.Context(), child.pid))

	must(t, cmd.Wait())
	if !Gone(child.pid) {
		t.Error("a reaped process counts as alive")
	}
	arrives(t, "end of a watch on nothing", Watch(t.Context(), child.pid))
}

func TestWatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	cmd, child := startChild(t, hub, "child")
	ctx, cancel := context.WithCancel(t.Context())
	gone := Watch(ctx, child.pid)
	waits := waysToWatch(child.pid)
	cancel()
	for name, wait := range waits {
		if wait(ctx) {
			t.Errorf("%s: a living process was reported gone", name)
		}
	}
	select {
	case <-gone:
		t.Error("the channel was closed by the context")
	default:
	}
	child.kill()
	_ = cmd.Wait() // killed
}

func TestGone(t *testing.T) {
	t.Parallel()
	for _, pid := range []int{0, -1, -os.Getpid()} {
		if !Gone(pid) {
			t.Errorf("%d counts as a process", pid)
		}
		arrives(t, "end of a watch on no process", Watch(t.Context(), pid))
	}
	for _, pid := range []int{1, os.Getpid(), os.Getppid()} {
		if Gone(pid) {
			t.Errorf("process %d counts as gone", pid)
		}
	}
}
