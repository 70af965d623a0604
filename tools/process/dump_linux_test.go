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

	"github.com/rye-mcp/rye-mcp/tools/process/guesttest"
)

// commoner starts a helper as an ordinary user, in a session of its own.
func (h *hub) commoner(name string, args ...string) *peer {
	h.t.Helper()
	program, who := executable(), guesttest.Credential()
	if who != nil {
		program = h.path("helper")
		if _, err := os.Stat(program); err != nil {
			must(h.t, guesttest.Copy(program))
			must(h.t, os.Chmod(filepath.Dir(program), 0o711))
			must(h.t, os.Chmod(h.socket, 0o777))
		}
	}
	return h.leader(program, who, name, args...)
}

// leader starts a helper in a session of its own.
func (h *hub) leader(program string, who *syscall.Credential, name string, args ...string) *peer {
	h.t.Helper()
	var cmd *exec.Cmd
	must(h.t, guesttest.Start(func() error {
		cmd = exec.Command(executable(), args...)
		cmd.Path, cmd.Env = program, helperEnv(h.socket, name)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: who}
		return cmd.Start()
	}))
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
	if guesttest.Credential() != nil { // of root, and so not to be read either
		hub.leader(executable(), nil, "stranger", "run", "--id", "b")
		tool.want("leader thread run --id b", "0")
	}
}
