package process

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"strings"
)

// maxAncestry bounds the walk of [Ancestry], in which a number may have got to
// another process meanwhile.
const maxAncestry = 128

// Ancestry returns the arguments of this process and of those that have started
// it, the nearest first. It ends at a process whose parent is gone.
func Ancestry() iter.Seq[[]string] {
	return func(yield func(args []string) bool) {
		pid := os.Getpid()
		for n := 0; pid > 1 && n < maxAncestry; n++ {
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // which everybody may read
			if err != nil || !yield(strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")) {
				return
			}
			pid = parentOf(pid)
		}
	}
}

// parentOf is the parent of a process; 0 when that cannot be known.
func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// Behind the name, which may contain any byte: the state, then the parent
	// (proc_pid_stat(5)).
	var state string
	var parent int
	_, _ = fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent)
	return parent
}
