package life_test

import (
	"errors"
	"os"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

func newLocal(t *testing.T) *life.Local {
	t.Helper()
	return &life.Local{Project: "/project", Home: folder.Home{Dir: t.TempDir()}.Always(), Place: process.Here("here")}
}

// TestClaim: one has a life or a lease at a time, and whoever looks disturbs nobody.
func TestClaim(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	key := life.Key{Thread: "work-1"}
	if err := l.Home().Of(key.Thread).Make(); err != nil {
		t.Fatal(err)
	}
	for name, claim := range map[string]func() (life.Hold, error){
		"life":  func() (life.Hold, error) { return l.Claim(key) },
		"lease": func() (life.Hold, error) { return l.Lease("line") },
	} {
		hold, err := claim()
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := claim(); !errors.Is(err, life.ErrHeld) {
			t.Errorf("%s: a second one has it: %v", name, err)
		}
		if held, err := l.Held(key); err != nil || held != (name == "life") {
			t.Errorf("%s: held %t, %v", name, held, err)
		}
		if err := errors.Join(hold.Release(), hold.Release()); err != nil {
			t.Error(name, err)
		}
		if again, err := claim(); err != nil || again.Release() != nil {
			t.Errorf("%s: not free again: %v", name, err)
		}
	}
}

// TestReach: a process is signalled by its number only where that is known to be it.
func TestReach(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	self := thread.Process(l.Place.Self())
	changed := func(f func(*thread.Process)) thread.Process {
		p := self
		f(&p)
		return p
	}
	for name, c := range map[string]struct {
		process thread.Process
		want    life.Reach
		over    bool
	}{
		"this one":          {self, life.Near, false},
		"none":              {changed(func(p *thread.Process) { p.PID = 0 }), life.Bygone, true},
		"its number before": {changed(func(p *thread.Process) { p.Started++ }), life.Bygone, true},
		"before a restart":  {changed(func(p *thread.Process) { p.Boot += "x" }), life.Bygone, true},
		"a container's":     {changed(func(p *thread.Process) { p.PIDNamespace += "x" }), life.Walled, false},
		"another machine's": {changed(func(p *thread.Process) { p.Boot, p.Host = p.Boot+"x", "there" }), life.Elsewhere, false},
	} {
		if got := l.Reach(c.process); got != c.want || l.Over(c.process) != c.over {
			t.Errorf("%s: %v, over %t; want %v, %t", name, got, l.Over(c.process), c.want, c.over)
		}
	}
}

type foreign struct{}

func (foreign) Release() error { return nil }

// TestForeignHold: what was claimed elsewhere cannot be handed to a process here.
func TestForeignHold(t *testing.T) {
	t.Parallel()
	if _, err := life.Lock(foreign{}); err == nil {
		t.Error("handed over")
	}
}

// TestStopNobody: a thread whose life nobody holds is not signalled, whatever its row
// says of its process.
func TestStopNobody(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	rec := thread.Record{ThreadID: "work-1", Status: thread.Running, Process: thread.Process(l.Place.Identify(os.Getppid()))}
	if how, err := l.Stop(t.Context(), rec, life.Ladder{}, nil); how != life.AlreadyGone || err != nil {
		t.Errorf("%s, %v", how, err)
	}
}
