package main_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestUnderNohup runs the script about SIGHUP where the signal is ignored, as it is
// in some CI: it must neither hang nor say anything else.
func TestUnderNohup(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `trap "" HUP; exec "$0" "$@"`, program,
		"-test.run", "^TestScript$/^cli_hangup$", "-test.v", "-test.timeout", (2 * waitPatience).String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // away from the terminal's signals
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
}
