package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// bootID names this start of this kernel (random(4)).
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// pidNamespace names the namespace of process numbers that this process is in
// (namespaces(7)).
func pidNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(name, "pid:["), "]")
}

// startOf is when a process began, in ticks since the machine did; 0 when that
// cannot be known.
func startOf(pid int) int64 {
	// The 22nd field, of which the second, the name, may contain any byte; the state
	// is the third (proc_pid_stat(5)).
	const starttime = 22 - 3
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= starttime {
		return 0
	}
	ticks, err := strconv.ParseInt(fields[starttime], 10, 64)
	if err != nil {
		return 0
	}
	return ticks
}

// Stopped tells whether a process is suspended: by SIGSTOP, by Ctrl-Z or by a
// debugger.
func Stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	name := bytes.LastIndex(stat, []byte(") "))
	return name >= 0 && name+2 < len(stat) && (stat[name+2] == 'T' || stat[name+2] == 't')
}
