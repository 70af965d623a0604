package life_test

import (
	"context"
	"errors"
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
