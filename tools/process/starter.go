//go:build linux || darwin

package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shells are programs that start another one for somebody else.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "env", "timeout", "nohup", "setsid"}

// Starter is the number of the process that has started this one: the nearest above it
// that is no shell.
func Starter() int {
	for pid, args := range ancestors() {
		if pid == os.Getpid() || len(args) > 0 && isShell(args[0]) {
			continue
		}
		return pid
	}
	return os.Getppid()
}

// Above are the numbers of the processes above this one, the nearest first.
func Above() (all []int) {
	for pid := range ancestors() {
		if pid != os.Getpid() {
			all = append(all, pid)
		}
	}
	return all
}

func isShell(program string) bool {
	return slices.Contains(shells, strings.TrimPrefix(filepath.Base(program), "-"))
}
