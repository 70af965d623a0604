package process

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestPlaceOfContainer: a process in another namespace of process numbers, as in a
// container, is the first one there. Its number means something else here, and its
// locks are seen.
func TestPlaceOfContainer(t *testing.T) {
	t.Parallel()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), executable)
	cmd.Env = append(os.Environ(), placeVar+"=there")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	out, err := cmd.Output()
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("this system does not let a test have a namespace of process numbers: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var there ID
	if err := json.Unmarshal(out, &there); err != nil {
		t.Fatal(err)
	}
	here := Here("there") // even under the same name
	if there.PID != 1 || here.Reach(there) != Walled || here.Over(there) || here.Signallable(there) {
		t.Errorf("%+v is at distance %d of %+v", there, here.Reach(there), here)
	}
}
