package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// ordinary is a user without privileges, where the test has them: nothing hides
// from root.
const ordinary = 65534

// commoner starts a helper as an ordinary user, in a session of its own.
func (h *hub) commoner(name string, args ...string) *peer {
	h.t.Helper()
	cmd := exec.Command(executable(), args...)
	cmd.Env = helperEnv(h.socket, name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Getuid() == 0 {
		cmd.Path = h.path("helper")
		program, err := os.ReadFile(executable())
		must(h.t, err)
		if _, err := os.Stat(cmd.Path); err != nil {
			must(h.t, os.WriteFile(cmd.Path, program, 0o755))
			must(h.t, os.Chmod(filepath.Dir(cmd.Path), 0o711))
			must(h.t, os.Chmod(h.socket, 0o777))
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: ordinary, Gid: ordinary}
	}
	must(h.t, cmd.Start())
	h.t.Cleanup(func() { _ = cmd.Wait() }) // it ends with its connection
	return h.peer(name)
}

// A process that hides its memory is closed to others of the same user, and to be found
// all the same.
func TestHideMemory(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	args := []string{"run", "--id", "a"}
	thread, tool := hub.commoner("thread", args...), hub.commoner("tool")
	environ, memory := fmt.Sprintf("/proc/%d/environ", thread.pid), fmt.Sprintf("/proc/%d/mem", thread.pid)
	tool.want("read "+environ, "ok")
	thread.want("hide", "ok")
	for _, order := range []string{"read " + environ, "open " + memory} {
		if got := tool.ask(order); !strings.Contains(got, "permission denied") {
			t.Errorf("%s: %s", order, got)
		}
	}
	if Gone(thread.pid) {
		t.Error("it counts as gone")
	}
	for with, want := range map[string]int{
		"run --id a": thread.pid, "run --id": 0, "run --id a b": 0, "--id a": 0, "": 0,
	} {
		tool.want("leader thread "+with, strconv.Itoa(want))
	}
}
