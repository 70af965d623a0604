package process

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestKillLeftovers kills what carries the whole mark, in whatever session it is,
// and leaves the caller and everybody else alone.
func TestKillLeftovers(t *testing.T) {
	mark := Mark(t.TempDir(), "work-1")
	other := Mark("/elsewhere", "work-1")
	for _, entry := range mark {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value) // the caller may be one of them
	}
	start := func(env []string, attr syscall.SysProcAttr) int {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sleep", "600")
		cmd.Env, cmd.SysProcAttr = env, &attr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		})
		return cmd.Process.Pid
	}
	near, away := start(mark, syscall.SysProcAttr{}), start(mark, syscall.SysProcAttr{Setsid: true})
	strangers := []int{start(other, syscall.SysProcAttr{}), start(mark[:1], syscall.SysProcAttr{}), start([]string{"A=b"}, syscall.SysProcAttr{})}

	if leader, err := Leader(mark, nil); err != nil || leader != away {
		t.Errorf("leader %d, %v; want %d", leader, err, away)
	}
	if err := KillLeftovers(t.Context(), mark); err != nil {
		t.Error(err)
	}
	for _, pid := range []int{near, away} {
		if !Gone(pid) {
			t.Errorf("process %d is there", pid)
		}
	}
	for _, pid := range strangers {
		if Gone(pid) {
			t.Errorf("stranger %d is gone", pid)
		}
	}
	if leader, err := Leader(mark, nil); err != nil || leader != 0 {
		t.Errorf("leader of nothing %d, %v", leader, err)
	}
}
