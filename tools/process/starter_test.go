//go:build linux || darwin

package process

import (
	"os"
	"slices"
	"testing"
)

func TestStarter(t *testing.T) {
	t.Parallel()
	above := Above()
	if starter := Starter(); !slices.Contains(above, starter) || starter == os.Getpid() {
		t.Errorf("started by %d, above are %v", starter, above)
	}
	if len(above) == 0 || above[0] != os.Getppid() || slices.Contains(above, os.Getpid()) {
		t.Errorf("above %d are %v, and its parent is %d", os.Getpid(), above, os.Getppid())
	}
	for program, want := range map[string]bool{"/bin/sh": true, "-bash": true, "claude": false, "/usr/bin/node": false, "bashful": false} {
		if isShell(program) != want {
			t.Errorf("%s: %v", program, !want)
		}
	}
}
