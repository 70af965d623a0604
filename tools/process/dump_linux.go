package process

import "golang.org/x/sys/unix"

// HideMemory keeps other processes of the same user from reading the environment
// and the memory of this one, as long as they are not privileged
// (PR_SET_DUMPABLE(2const)). It leaves no core either, and debuggers cannot attach.
// Processes that this one starts are not affected.
func HideMemory() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
