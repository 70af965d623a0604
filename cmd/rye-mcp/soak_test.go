package main_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// soakMinutes is how long TestSoak works; 0 when nobody asked for a soak, and it works for
// seconds.
func soakMinutes() int {
	minutes, err := strconv.Atoi(os.Getenv(longtest.SoakVariable))
	if err != nil {
		return 0
	}
	return minutes
}

// slots is how many threads may run at once in a soak. Nobody starts another one
// while more than mostOpen have not ended: there is always a line then, and never
// one that two processors cannot work off while the soak rests.
const (
	slots    = 24
	mostOpen = 3 * slots
)

// errEnough says that nothing was started because mostOpen threads have not ended.
var errEnough = errors.New("enough threads are open")

// soaked is what runs in a soak: families, threads that hang until somebody
// ends them, and threads that are done at once.
func soaked() string { return fmt.Sprintf(walked, slots) }

// soak is a project under mixed load. Its workers do one thing after another,
// chosen by chance, among them what nobody wishes for: the kill of a thread, and
// of a server.
type soak struct {
	*place
	steady *host // lives as long as the soak
	// signals: processes are sent signals, so that a call may be told who holds the
	// database, or that the server ends.
	signals bool

	mu      sync.Mutex
	hosts   []*host // die and are replaced
	threads []view.Started
	counts  map[string]int
}

// TestSoak works a project hard, and looks once a minute whether everything is
// as it must be when the work rests. Then all threads are deleted, and nothing may be
// larger than after the first minute.
func TestSoak(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	rounds, each := soakMinutes(), time.Minute
	if rounds == 0 {
		rounds, each = 2, time.Second/2
	}
	s := &soak{place: newPlace(t, soaked()), counts: map[string]int{}}
	s.steady = s.serve()
	for range 3 {
		s.hosts = append(s.hosts, s.serve())
	}
	var memory []int
	var sizes []left
	for round := range rounds {
		s.work(uint64(round), each)
		s.rest()
		if memory = append(memory, residentPages(s.steady)); memory[round] > 2*memory[0] {
			t.Errorf("the server's memory has grown from %d to %d pages", memory[0], memory[round])
		}
		s.wantToldParents()
		s.noFault(s.steady)
		s.clean()
		sizes = append(sizes, s.measure())
		s.wantFlat(sizes[0], sizes[round])
		s.summary(round, memory[round])
	}
	s.Logf("bytes after the first round %v, after the last %v", sizes[0].bytes, sizes[len(sizes)-1].bytes)
	s.steady.close()
	for _, h := range s.hosts {
		h.close()
	}
	s.wantRest(s.steady)
}

// deeds are what workers do, with how often in a thousand.
var deeds = []struct {
	name string
	in   int
	do   func(s *soak, h *host, r *rand.Rand) error
}{
	{"starts", 250, func(s *soak, h *host, r *rand.Rand) error {
		open, err := ask[view.List](h, "list_active", args{"limit": mostOpen})
		if err != nil {
			return err
		}
		if open.NextCursor != "" {
			return errEnough
		}
		started, err := start(h, []string{"family", "quick", "quick", "clan", "stay"}[r.IntN(5)])
		if err == nil {
			s.mu.Lock()
			s.threads = append(s.threads, started)
			s.mu.Unlock()
		}
		return err
	}},
	{"waits", 150, func(s *soak, h *host, r *rand.Rand) error {
		_, err := ask[view.WaitResult](h, "wait_threads", args{"thread_ids": []thread.ID{s.pick(r).ThreadID}, "timeout": 0.2})
		return err
	}},
	{"cancels", 120, func(s *soak, h *host, r *rand.Rand) error {
		_, err := ask[stop.Stopped](h, "cancel_thread", args{"thread_id": s.pick(r).ThreadID})
		return err
	}},
	{"kills", 40, func(s *soak, h *host, r *rand.Rand) error {
		_, err := ask[stop.Stopped](h, "kill_thread", args{"thread_id": s.pick(r).ThreadID})
		return err
	}},
	{"looks", 300, func(s *soak, h *host, r *rand.Rand) error {
		_, err := ask[view.Status](h, "get_status", args{"thread_id": s.pick(r).ThreadID})
		return err
	}},
	{"lists", 100, func(_ *soak, h *host, _ *rand.Rand) error {
		_, err := ask[view.List](h, "list_threads", args{})
		return err
	}},
	{"deaths", 35, func(s *soak, _ *host, r *rand.Rand) error {
		if victim := s.pick(r); s.runs(victim.PID) {
			return syscall.Kill(victim.PID, syscall.SIGKILL)
		}
		return nil
	}},
	{"server deaths", 5, func(s *soak, _ *host, r *rand.Rand) error { return s.replace(r) }},
}

// work has workers do their deeds for a while.
func (s *soak) work(seed uint64, length time.Duration) {
	const workers = 12
	var (
		group sync.WaitGroup
		over  atomic.Bool
	)
	end := time.AfterFunc(length, func() { over.Store(true) })
	defer end.Stop()
	for i := range workers {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		group.Go(func() {
			for !over.Load() {
				s.deed(r)
			}
		})
	}
	group.Wait()
}

// deed does one deed by chance, with a server by chance. The server may be killed
// meanwhile; a refusal fails the test.
func (s *soak) deed(r *rand.Rand) {
	s.mu.Lock()
	h, first := s.steady, len(s.threads) == 0
	if i := r.IntN(len(s.hosts) + 1); i < len(s.hosts) {
		h = s.hosts[i]
	}
	s.mu.Unlock()
	chosen, lot := deeds[0], r.IntN(1000)
	for _, d := range deeds {
		if chosen = d; lot < d.in {
			break
		}
		lot -= d.in
	}
	if first {
		chosen = deeds[0] // there is nothing to do anything to yet
	}
	err := chosen.do(s, h, r)
	if errors.Is(err, errEnough) {
		return
	}
	var told *refused
	if errors.As(err, &told) && !s.mayHear(told) {
		s.Errorf("%s: %v", chosen.name, told)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[chosen.name]++
	if err != nil && told == nil {
		s.counts["answers that a dead server did not give"]++
	}
}

// mayHear reports whether a refusal is what signals lead to.
func (s *soak) mayHear(told *refused) bool {
	return s.signals && (strings.Contains(told.text, `"code":"database_busy"`) || strings.Contains(told.text, `"code":"cancelled"`))
}

// pick is one of the newest threads.
func (s *soak) pick(r *rand.Rand) view.Started {
	const newest = 60
	s.mu.Lock()
	defer s.mu.Unlock()
	from := max(0, len(s.threads)-newest)
	return s.threads[from+r.IntN(len(s.threads)-from)]
}

// runs reports whether the process works on this project; its number may be a
// stranger's by now.
func (s *soak) runs(pid int) bool {
	in, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return err == nil && in == s.dir
}

// replace kills a server and starts another one.
func (s *soak) replace(r *rand.Rand) error {
	fresh, err := s.tryServe()
	if err != nil {
		return err
	}
	s.mu.Lock()
	i := r.IntN(len(s.hosts))
	victim := s.hosts[i]
	s.hosts[i] = fresh
	s.mu.Unlock()
	err = victim.cmd.Process.Kill()
	victim.close()
	return err
}

// rest ends what hangs and checks that nothing is left.
func (s *soak) rest() {
	s.Helper()
	s.wantEnd(s.steady)
	if left := allActive(s.steady); len(left) > 0 {
		s.Errorf("%d threads do not end: %+v", len(left), left)
	}
}

// residentPages is the memory of a server; 0 where only Linux tells.
func residentPages(h *host) int {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", h.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	var size, resident int
	_, _ = fmt.Sscan(string(content), &size, &resident)
	return resident
}

// summary logs a line about a round.
func (s *soak) summary(round, pages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var did []string
	for _, d := range deeds {
		did = append(did, fmt.Sprintf("%d %s", s.counts[d.name], d.name))
	}
	state := "all as it must be"
	if s.Failed() {
		state = "FAILED"
	}
	s.Logf("minute %d: %s; server %d MB; %s", round+1, strings.Join(did, ", "), pages*os.Getpagesize()/1_000_000, state)
}
