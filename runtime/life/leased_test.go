package life_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestLeased: the run of another worker is held as long as that one's lease, and never
// again afterwards; of this worker's own, and of runs that no worker has given, the locks
// here say all. That nobody can be asked is an error, and no answer.
func TestLeased(t *testing.T) {
	t.Parallel()
	local := newLocal(t)
	if err := local.Home().Of("work-1").Make(); err != nil {
		t.Fatal(err)
	}
	own, other, gone := thread.NewIncarnation(), thread.NewIncarnation(), thread.NewIncarnation()
	var unreachable error
	alive := map[thread.Incarnation]bool{own: true, other: true}
	l := &life.Leased{Life: local, Own: func() thread.Incarnation { return own }, Alive: func(_ context.Context, i thread.Incarnation) (bool, error) {
		return alive[i], unreachable
	}}
	want := func(run thread.Run, want bool) {
		t.Helper()
		if held, err := l.Held(life.Key{Thread: "work-1", Run: run}); held != want || err != nil {
			t.Errorf("%s: %t, %v", run, held, err)
		}
	}
	want(other.NewRun(), true)
	want(gone.NewRun(), false)
	alive[gone] = true // which cannot be
	want(gone.NewRun(), false)
	want("OLDER", false)

	run := own.NewRun()
	want(run, false)
	hold, err := l.Claim(life.Key{Thread: "work-1", Run: run})
	if err != nil {
		t.Fatal(err)
	}
	want(run, true)
	if err := hold.Release(); err != nil {
		t.Fatal(err)
	}
	unreachable = errors.New("no answer")
	if held, err := l.Held(life.Key{Thread: "work-1", Run: thread.NewIncarnation().NewRun()}); held || !errors.Is(err, unreachable) {
		t.Errorf("unreachable: %t, %v", held, err)
	}
}

// TestLeasedAskAgain: whoever has seen a lease run out gets no older answer, not even one that is
// under way.
func TestLeasedAskAgain(t *testing.T) {
	t.Parallel()
	other := thread.NewIncarnation()
	alive, meanwhile := true, func() {}
	l := &life.Leased{Life: newLocal(t), Own: func() thread.Incarnation { return "" }, Alive: func(context.Context, thread.Incarnation) (bool, error) {
		answer := alive
		meanwhile()
		return answer, nil
	}}
	held := func() bool {
		t.Helper()
		held, err := l.Held(life.Key{Thread: "work-1", Run: other.NewRun()})
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	held()
	alive = false
	l.AskAgain()
	if held() {
		t.Error("an older answer is given")
	}
	alive, meanwhile = true, func() { alive = false; l.AskAgain() }
	l.AskAgain()
	held()
	if held() {
		t.Error("an answer that was under way is given again")
	}
}

// told are the leases of a process as a test hears of them.
type told []string

func (h *told) Take(run thread.Run) { *h = append(*h, "take "+string(run)) }
func (h *told) Back(run thread.Run) { *h = append(*h, "back "+string(run)) }
func (h *told) Give(run thread.Run, ended <-chan struct{}) {
	<-ended
	*h = append(*h, "give "+string(run))
}

// gone is a process that has ended.
type gone struct{ life.Running }

func (gone) Done() <-chan struct{} {
	over := make(chan struct{})
	close(over)
	return over
}

// TestLeases: a lease goes with what was claimed: it is back when that is let go, and the
// process's that has inherited it.
func TestLeases(t *testing.T) {
	t.Parallel()
	local := newLocal(t)
	if err := local.Home().Of("work-1").Make(); err != nil {
		t.Fatal(err)
	}
	heard := &told{}
	l := &life.Leased{Life: local, Leases: heard}
	a, b, c := thread.NewRun(), thread.NewRun(), thread.NewRun()
	claim := func(run thread.Run) life.Hold {
		hold, err := l.Claim(life.Key{Thread: "work-1", Run: run})
		if err != nil {
			t.Fatal(err)
		}
		return hold
	}
	released := claim(a)
	inherited := claim(b)
	if _, err := life.Lock(inherited); err != nil {
		t.Error(err)
	}
	life.HandOver(inherited, gone{})
	for _, let := range []func() error{released.Release, released.Release, inherited.Release, claim(c).End} {
		if err := let(); err != nil {
			t.Error(err)
		}
	}
	want := []string{"take " + string(a), "take " + string(b), "give " + string(b), "take " + string(c), "back " + string(a), "back " + string(c)}
	if !slices.Equal(*heard, want) {
		t.Errorf("they hear\n%q, want\n%q", *heard, want)
	}
}
