package pgtest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tick is the unit of times in /proc, which Linux has for all programs.
const tick = 10 * time.Millisecond

// CPU is the processor time that the server's processes have used, those that have ended
// included. It is read from /proc.
func (c *Cluster) CPU(t testing.TB) (used time.Duration) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	pid := c.postmaster.Process.Pid
	children, err := childrenOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	for n, each := range append(children, pid) {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(each), "stat"))
		if err != nil {
			continue // it has ended
		}
		// From the state on, which is the third field of the manual page proc(5): utime is the
		// 14th, stime the 15th, and behind them those of children that were waited for.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		last := 13
		if n == len(children) {
			last = 15
		}
		for _, field := range fields[11:last] {
			ticks, _ := strconv.Atoi(field)
			used += time.Duration(ticks) * tick
		}
	}
	return used
}
