package main_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// signalEvery is how often a process of a campaign is sent a signal.
const signalEvery = 40 * time.Millisecond

// TestSignals works a project hard while its threads, their tools and its servers are
// sent signals by chance: SIGKILL, SIGTERM, and SIGSTOP that no SIGCONT follows. One
// server is spared. Afterwards every suspended thread can be killed, no row is stuck,
// nothing is left, and parents that waited were told.
func TestSignals(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	rounds, each := soakMinutes(), time.Minute
	if rounds == 0 {
		rounds, each = 1, time.Second
	}
	s := &soak{place: newPlace(t, soaked()), counts: map[string]int{}, signals: true}
	s.steady = s.serve()
	for range 3 {
		s.hosts = append(s.hosts, s.serve())
	}
	for round := range rounds {
		sent := make(chan map[syscall.Signal]int)
		go func() { sent <- s.signal(rand.New(rand.NewPCG(uint64(round), 99)), each) }()
		s.work(uint64(round), each)
		t.Logf("round %d: %v", round+1, <-sent)
		s.endSuspended()
		s.rest()
	}
	s.steady.close()
	for _, h := range s.hosts {
		h.close()
	}
	s.wantRest(s.steady)
	s.wantToldParents()
}

// signal sends signals for a while, then ends the servers that it has suspended: their
// callers wait for them.
func (s *soak) signal(r *rand.Rand, length time.Duration) map[syscall.Signal]int {
	sent := map[syscall.Signal]int{}
	var suspended []*host
	tick := time.NewTicker(signalEvery)
	defer tick.Stop()
	for over := time.After(length); ; {
		select {
		case <-tick.C:
			number := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGSTOP}[r.IntN(3)]
			if h, ok := s.strike(r, number); ok {
				sent[number]++
				if h != nil {
					suspended = append(suspended, h)
				}
			}
		case <-over:
			for _, h := range suspended {
				_ = h.cmd.Process.Kill()
			}
			return sent
		}
	}
}

// strike sends a signal to one process of the project. A server has been replaced
// before, and is returned.
func (s *soak) strike(r *rand.Rand, number syscall.Signal) (struck *host, ok bool) {
	pids := s.pids(func(pid int) bool { return pid != s.steady.cmd.Process.Pid })
	if len(pids) == 0 {
		return nil, false
	}
	victim := pids[r.IntN(len(pids))]
	s.mu.Lock()
	at := slices.IndexFunc(s.hosts, func(h *host) bool { return h.cmd.Process.Pid == victim })
	s.mu.Unlock()
	if at >= 0 {
		fresh, err := s.tryServe()
		if err != nil {
			return nil, false
		}
		s.mu.Lock()
		struck, s.hosts[at] = s.hosts[at], fresh
		victim = struck.cmd.Process.Pid
		s.mu.Unlock()
	}
	return struck, syscall.Kill(victim, number) == nil
}

// pids are the processes that work in the project and fit.
func (s *soak) pids(fits func(pid int) bool) (pids []int) {
	lines, err := processesIn(s.dir)
	if err != nil {
		s.Error(err)
	}
	for _, line := range lines {
		number, _, _ := strings.Cut(line, " ")
		if pid, err := strconv.Atoi(number); err == nil && fits(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endSuspended kills the threads that are suspended, by their ids, and the servers. A
// kill that is told that another suspended one holds the database ends its thread, and
// the next pass comes to that one.
func (s *soak) endSuspended() {
	s.Helper()
	const passes = 10
	for range passes {
		suspended := s.pids(process.Stopped)
		if len(suspended) == 0 {
			return
		}
		for _, pid := range suspended {
			s.endOne(pid)
		}
	}
	s.Errorf("suspended processes are left: %v", s.pids(process.Stopped))
}

func (s *soak) endOne(pid int) {
	s.Helper()
	id := threadOf(s.commandOf(pid))
	if id == "" {
		_ = syscall.Kill(pid, syscall.SIGKILL) // a server, or what a tool had started
		return
	}
	_, err := ask[stop.Stopped](s.steady, "kill_thread", args{"thread_id": id})
	var told *refused
	if err != nil && (!errors.As(err, &told) || !s.mayHear(told)) {
		s.Errorf("kill of the suspended %s: %v", id, err)
	}
	if !process.Gone(pid) && process.Stopped(pid) {
		s.Errorf("process %d of %s is suspended after a kill", pid, id)
	}
}

// commandOf is the command line of a process.
func (s *soak) commandOf(pid int) string {
	lines, err := processesIn(s.dir)
	if err != nil {
		s.Error(err)
	}
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, fmt.Sprintf("%d ", pid)); ok {
			return rest
		}
	}
	return ""
}

// threadOf is the thread whose process has a command line; empty when it is none's.
func threadOf(command string) thread.ID {
	_, after, _ := strings.Cut(command, "--thread-id ")
	id, _, _ := strings.Cut(after, " ")
	return thread.ID(id)
}
