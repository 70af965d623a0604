package process

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// argsOf are the arguments of a process, its program's name first
// (proc_pid_cmdline(5)). Everybody may read them.
func argsOf(pid int) ([]string, error) { return procStrings(pid, "cmdline") }

// environOf is the environment that a process was started with
// (proc_pid_environ(5)). That of one that hides its memory is fs.ErrPermission.
func environOf(pid int) ([]string, error) { return procStrings(pid, "environ") }

// procStrings reads a file of strings that each end with a zero byte.
func procStrings(pid int, name string) ([]string, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00"), nil
}

// nameOf is a process's name, as it calls itself.
func nameOf(pid int) (string, error) {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(name)), err
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
