package worker

import (
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestPatient: a thread that is to be tried again is left to a worker that can run it, has
// joined earlier and goes on, and of several to one.
func TestPatient(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	worker := func(name string, joined int, change func(*fleet.Seen)) fleet.Seen {
		w := fleet.Seen{
			Worker: fleet.Worker{Name: name, Projects: []string{"p"}, Offer: fleet.Offer{Able: map[string][]string{"p": {"anthropic"}}}},
			Alive:  true, Incarnation: thread.Incarnation(name), StartedAt: at.Add(time.Duration(joined) * time.Second), LeaseUntil: at,
		}
		if change != nil {
			change(&w)
		}
		return w
	}
	asks, tool := thread.Record{Model: "anthropic/m"}, thread.Record{Kind: thread.KindTool}
	own := worker("own", 5, nil)
	for name, c := range map[string]struct {
		other fleet.Seen
		rec   thread.Record
		want  bool
	}{
		"earlier":                    {worker("a", 1, nil), asks, true},
		"later":                      {worker("a", 9, nil), asks, false},
		"at the same time, before":   {worker("a", 5, nil), asks, true},
		"at the same time, behind":   {worker("z", 5, nil), asks, false},
		"draining":                   {worker("a", 1, func(w *fleet.Seen) { w.Draining = true }), asks, false},
		"gone":                       {worker("a", 1, func(w *fleet.Seen) { w.Alive = false }), asks, false},
		"of another project":         {worker("a", 1, func(w *fleet.Seen) { w.Projects = []string{"q"} }), asks, false},
		"without the key":            {worker("a", 1, func(w *fleet.Seen) { w.Able = nil }), asks, false},
		"without the key, of a tool": {worker("a", 1, func(w *fleet.Seen) { w.Able = nil }), tool, true},
	} {
		p := patient{own: "own"}
		for range 2 {
			if p.leavesTo([]fleet.Seen{c.other, own}, "p", c.rec) {
				t.Errorf("%s: it is left to one that may have been killed", name)
			}
		}
		c.other.LeaseUntil = at.Add(time.Second)
		if got := p.leavesTo([]fleet.Seen{c.other, own}, "p", c.rec); got != c.want {
			t.Errorf("%s: left to it is %t", name, got)
		}
	}
}
