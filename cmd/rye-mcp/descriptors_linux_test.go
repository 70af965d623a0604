package main_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestNoDescriptorsLeft takes from a running server every file descriptor that
// is not open yet. Calls that need one are refused with the reason, nothing is
// lost, and when descriptors are free again everything works.
func TestNoDescriptorsLeft(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, fmt.Sprintf(loaded, 10))
	h := p.serve()
	slow := startMany([]*host{h}, "slow", 1)
	p.wantCalls(1)

	giveBack := p.leaveDescriptors(h, 0)
	refusals := 0
	for tool, arguments := range map[string]args{
		"rye_execute":     {"item_id": "brief", "async": true},
		"rye_fetch":       {"item_id": "brief"},
		"rye_search":      {"query": "brief"},
		"get_status":      {"thread_id": slow[0]},
		"list_threads":    {},
		"wait_threads":    {"thread_ids": slow, "timeout": 0},
		"read_transcript": {"thread_id": slow[0]},
	} {
		if p.refusesForWant(h, tool, arguments) {
			refusals++
		}
	}
	if refusals < 5 {
		t.Errorf("only %d calls were refused", refusals)
	}
	giveBack()
	p.startsWithFew(h)

	if status := must[view.Status](h, "get_status", args{"thread_id": slow[0]}); status.Status != thread.Running {
		t.Errorf("the thread is %s", status.Status)
	}
	wantCompleted(h, startMany([]*host{h}, "brief", 3))
	p.model.release()
	wantCompleted(h, slow)
	h.close()
	p.wantRest(h)
}

// refusesForWant makes a call, which may fail for want of descriptors only.
func (p *place) refusesForWant(h *host, tool string, arguments args) bool {
	p.Helper()
	_, err := ask[struct{}](h, tool, arguments)
	var told *refused
	if err != nil && (!errors.As(err, &told) || !strings.Contains(told.text, "too many open files")) {
		p.Errorf("%s: %v", tool, err)
	}
	return err != nil
}

// startsWithFew starts threads with one descriptor more each time, so that each
// start fails a little later, until one does not.
func (p *place) startsWithFew(h *host) {
	p.Helper()
	const most = 40
	for left := range most {
		giveBack := p.leaveDescriptors(h, left)
		failed := p.refusesForWant(h, "rye_execute", args{"item_id": "brief", "async": true})
		giveBack()
		if !failed {
			return
		}
	}
	p.Errorf("with %d descriptors left no thread can be started", most)
}

// leaveDescriptors lets a server open so many files more at most, until the
// function it returns is called. Numbers that are free between those in use are
// left too, unless it is to have none.
func (p *place) leaveDescriptors(h *host, left int) (giveBack func()) {
	p.Helper()
	pid, highest := h.cmd.Process.Pid, 0
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if errors.Is(err, fs.ErrPermission) {
		p.Skip("only root sees the descriptors of a process that hides its memory")
	}
	p.noError(err)
	for _, file := range open {
		fd, err := strconv.Atoi(file.Name())
		p.noError(err)
		highest = max(highest, fd)
	}
	var had unix.Rlimit
	p.noError(unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &had))
	few := unix.Rlimit{Max: had.Max}
	if left > 0 {
		few.Cur = uint64(highest + 1 + left)
	}
	p.noError(unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil))
	return func() {
		p.Helper()
		p.noError(unix.Prlimit(pid, unix.RLIMIT_NOFILE, &had, nil))
	}
}
