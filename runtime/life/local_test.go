package life_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// locks are the names of the files of lives that a thread has.
func locks(t *testing.T, l *life.Local, id thread.ID) (names []string) {
	t.Helper()
	paths, err := l.Home().Of(id).Locks()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

// TestLifeOfARun: each run of a thread has a life of its own, of which nothing is left.
// A question without a run is answered for any of them.
func TestLifeOfARun(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	dir := l.Home().Of("work-1")
	if err := dir.Make(); err != nil {
		t.Fatal(err)
	}
	one, other, former := life.Key{Thread: "work-1", Run: thread.NewRun()}, life.Key{Thread: "work-1", Run: thread.NewRun()}, life.Key{Thread: "work-1", Run: "OLDER"}
	want := func(step string, held map[life.Key]bool) {
		t.Helper()
		for _, k := range []life.Key{one, other, former, {Thread: "work-1"}} {
			if got, err := l.Held(k); got != held[k] || err != nil {
				t.Errorf("%s: %q is held: %t, %v", step, k.Run, got, err)
			}
		}
	}
	whoever := life.Key{Thread: "work-1"}
	want("before", nil)
	first, err := l.Claim(one)
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.Claim(other)
	if err != nil {
		t.Fatal("another run: ", err)
	}
	if _, err := l.Claim(one); !errors.Is(err, life.ErrHeld) {
		t.Errorf("twice: %v", err)
	}
	want("both", map[life.Key]bool{one: true, other: true, former: true, whoever: true})
	if err := second.Release(); err != nil {
		t.Error(err)
	}
	want("one", map[life.Key]bool{one: true, former: true, whoever: true})
	// Locks that crashes and older versions have left, and files that are none.
	for _, name := range []string{"thread.lock", string(thread.NewRun()) + ".lock", "resume.lock"} {
		if err := os.WriteFile(filepath.Join(string(dir), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	third, err := l.Claim(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.End(), first.End(), first.Release()); err != nil {
		t.Error(err)
	}
	if got := locks(t, l, "work-1"); !slices.Equal(got, []string{string(other.Run) + ".lock"}) {
		t.Errorf("left are %q", got)
	}
	if _, err := os.Stat(filepath.Join(string(dir), "resume.lock")); err != nil {
		t.Error(err)
	}
	want("the other", map[life.Key]bool{other: true, former: true, whoever: true})
	if err := third.Release(); err != nil {
		t.Error(err)
	}
	want("after", nil)
}

// TestHostileRun: a run that stands in a row leads to no file outside the thread's folder.
func TestHostileRun(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	if err := l.Home().Of("work-1").Make(); err != nil {
		t.Fatal(err)
	}
	for _, run := range []thread.Run{"r", "../../r", "r/../../x", thread.NewRun() + "/x", "r" + thread.NewRun(), "registry", thread.Run("r" + strings.Repeat("a", 26))} {
		hold, err := l.Claim(life.Key{Thread: "work-1", Run: run})
		if err != nil {
			t.Fatalf("%q: %v", run, err)
		}
		if got := locks(t, l, "work-1"); !slices.Equal(got, []string{"thread.lock"}) {
			t.Errorf("%q: %q", run, got)
		}
		if err := hold.Release(); err != nil {
			t.Error(err)
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
func (foreign) End() error     { return nil }

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
