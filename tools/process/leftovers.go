//go:build linux || darwin

package process

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// KillLeftovers kills every process that was started with all entries of mark
// ("NAME=value") in its environment, whatever session and group it has made
// itself since: the commands that a thread ran and what those left running. The
// caller is spared, and what cleared or hides its environment is not found.
func KillLeftovers(ctx context.Context, mark []string) error {
	for range sweepPasses {
		left, err := pids()
		if err != nil {
			return fmt.Errorf("list what was started with %q: %w", mark, err)
		}
		left = slices.DeleteFunc(left, func(pid int) bool {
			return pid == os.Getpid() || !startedWith(pid, mark) || Gone(pid)
		})
		if len(left) == 0 {
			return nil
		}
		if err := killAll(ctx, left); err != nil {
			return fmt.Errorf("kill what was started with %q: %w", mark, err)
		}
	}
	return fmt.Errorf("what was started with %q keeps starting processes", mark)
}

// startedWith tells whether a process was started with the entries of mark in its
// environment. When that cannot be known the answer is no.
func startedWith(pid int, mark []string) bool {
	environ, err := environOf(pid)
	return err == nil && !slices.ContainsFunc(mark, func(entry string) bool { return !slices.Contains(environ, entry) })
}
