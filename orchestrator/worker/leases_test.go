package worker

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestLeases: leases begin and run out at any time, also between a look at them and the sweep
// that follows, and during that; and sweeps fail. In the end the threads of each that has run
// out are settled, and nobody sweeps any more.
func TestLeases(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		alive, unsettled, seen := map[thread.Incarnation]bool{"own": true}, map[thread.Incarnation]bool{}, map[thread.Incarnation]bool{}
		dead := map[thread.Incarnation]bool{} // and never alive again
		l := leases{own: "own"}
		die := func(i thread.Incarnation) {
			if alive[i] {
				delete(alive, i)
				unsettled[i], dead[i] = true, true
			}
		}
		look := func(between thread.Incarnation, fails bool) (swept bool) {
			maps.Copy(seen, alive)
			sweep := l.look(maps.Clone(alive))
			die(between)
			if !sweep {
				return false
			}
			if l.done(!fails); !fails {
				clear(unsettled)
			}
			return true
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			i := rapid.SampledFrom([]thread.Incarnation{"a", "b", "c"}).Draw(t, "worker")
			switch rapid.SampledFrom([]string{"begin", "die", "look", "die after the look", "fail"}).Draw(t, "step") {
			case "begin":
				if !dead[i] {
					alive[i] = true
				}
			case "die":
				die(i)
			case "look":
				look("", false)
			case "die after the look":
				look(i, false)
			case "fail":
				look("", true)
			}
		}
		for range mostPause + 2 {
			look("", false)
		}
		for i := range unsettled {
			if seen[i] { // nobody has a lease for less than the time between two looks
				t.Errorf("the threads of %s are not settled: %+v", i, l)
			}
		}
		if look("", false) {
			t.Error("it sweeps again")
		}
	})
}

// TestLeasesPause: sweeps that go on failing become fewer; a lease that runs out meanwhile is
// not kept waiting.
func TestLeasesPause(t *testing.T) {
	t.Parallel()
	l := leases{own: "own"}
	now := map[thread.Incarnation]bool{"own": true, "a": true}
	sweeps := 0
	for range 100 {
		if l.look(now) {
			sweeps++
			l.done(false)
		}
	}
	if sweeps < 5 || sweeps > 10 {
		t.Errorf("in 100 looks it sweeps %d times", sweeps)
	}
	if !l.look(map[thread.Incarnation]bool{"own": true}) {
		t.Error("when a lease runs out it waits")
	}
}
