package main_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestStopped suspends a server in the middle of a call, and a thread. Others
// go on; a process that is continued goes on as well, and one that stays suspended
// can be killed.
func TestStopped(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, fmt.Sprintf(loaded, 10))
	one, other := p.serve(), p.serve()
	var (
		ids  []thread.ID
		pids []int
	)
	for range 3 {
		started, err := start(one, "slow")
		p.noError(err)
		ids, pids = append(ids, started.ThreadID), append(pids, started.PID)
	}
	p.wantCalls(len(ids))
	woken := make(chan struct{})
	go func() {
		defer close(woken)
		wantCompleted(one, ids[:1])
	}()
	must[view.List](one, "list_active", nil) // it works
	for _, pid := range append(pids[1:], one.cmd.Process.Pid) {
		p.suspend(pid)
	}
	// Before its model answers: a thread that is killed goes on for a moment, and
	// ends with an answer that it has.
	stopped := must[stop.Stopped](other, "kill_thread", args{"thread_id": ids[2]})
	if !stopped.Success || stopped.Receipts[0].Status != thread.Cancelled {
		t.Errorf("kill of a suspended thread: %+v", stopped)
	}
	p.model.release()

	wantCompleted(other, ids[:1])
	wantCompleted(other, startMany([]*host{other}, "brief", 2))
	for _, id := range ids[1:2] {
		if status := must[view.Status](other, "get_status", args{"thread_id": id}); status.Status != thread.Running {
			t.Errorf("a suspended thread is %s", status.Status)
		}
	}
	p.noError(syscall.Kill(pids[1], syscall.SIGCONT))
	wantCompleted(other, ids[1:2])
	p.noError(syscall.Kill(one.cmd.Process.Pid, syscall.SIGCONT))
	<-woken
	for _, h := range []*host{one, other} {
		h.close()
	}
	p.wantRest(other)
}

// suspend stops a process, which happens a moment after the signal.
func (p *place) suspend(pid int) {
	p.Helper()
	p.noError(syscall.Kill(pid, syscall.SIGSTOP))
	p.awaitSuspended(pid)
}

// awaitSuspended waits until a process is suspended, or gone.
func (p *place) awaitSuspended(pid int) {
	p.Helper()
	p.until(func() (bool, string) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, _ := strings.Cut(string(stat), ") ")
		return err != nil || strings.ContainsAny(state[:min(1, len(state))], "TZ"), fmt.Sprintf("process %d is not suspended: %s", pid, stat)
	})
}
