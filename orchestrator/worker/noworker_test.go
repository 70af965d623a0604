package worker

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestNoWorker: a queued thread tells why none of the workers takes it, and what to do; one
// that a worker takes tells nothing.
func TestNoWorker(t *testing.T) {
	t.Parallel()
	const (
		start = "start one with rye-mcp worker --project DIR; until then a server, or whoever waits for the thread, starts it on a machine that has "
		files = "no worker takes threads of project team/app: " + start
	)
	worker := func(name string, change func(*fleet.Seen)) fleet.Seen {
		w := fleet.Seen{Worker: fleet.Worker{Name: name, Projects: []string{"team/app"}, Offer: fleet.Offer{Able: map[string][]string{"team/app": {"anthropic"}, "team/other": {"ollama"}}}}, Alive: true}
		if change != nil {
			change(&w)
		}
		return w
	}
	var (
		able      = worker("able", nil)
		gone      = worker("gone", func(w *fleet.Seen) { w.Alive = false })
		draining  = worker("draining", func(w *fleet.Seen) { w.Draining = true })
		elsewhere = worker("elsewhere", func(w *fleet.Seen) { w.Projects = []string{"team/other"} })
		keyless   = worker("keyless", func(w *fleet.Seen) { w.Able = map[string][]string{"team/other": {"anthropic"}} })
	)
	asks := thread.Record{Model: "anthropic/claude-haiku-4-5"}
	runsTool := thread.Record{Kind: thread.KindTool}
	for name, c := range map[string]struct {
		workers []fleet.Seen
		rec     thread.Record
		want    string
	}{
		"nobody":              {nil, asks, files + "the files and a key for anthropic"},
		"nobody, of a tool":   {nil, runsTool, files + "the files"},
		"gone and elsewhere":  {[]fleet.Seen{gone, elsewhere}, asks, files + "the files and a key for anthropic"},
		"draining":            {[]fleet.Seen{draining, gone}, asks, "the workers of project team/app take nothing new (draining): " + start + "the files and a key for anthropic"},
		"without the key":     {[]fleet.Seen{keyless, draining}, asks, "no worker of project team/app can use model provider anthropic (keyless): start one that has its settings and key"},
		"a tool needs no key": {[]fleet.Seen{keyless}, runsTool, ""},
		"one of them is able": {[]fleet.Seen{keyless, able, draining}, asks, ""},
	} {
		if got := noWorker(c.workers, "team/app", c.rec); got != c.want {
			t.Errorf("%s: it says\n%q, want\n%q", name, got, c.want)
		}
	}
	accepted := func(settings ...string) fleet.Seen {
		return worker("w", func(w *fleet.Seen) { w.Settings = settings })
	}
	for name, c := range map[string]struct {
		workers []fleet.Seen
		told    bool
	}{
		"the same":                  {[]fleet.Seen{accepted("a")}, false},
		"one has the same":          {[]fleet.Seen{accepted("b"), accepted("a")}, false},
		"others":                    {[]fleet.Seen{accepted("b"), accepted("")}, true},
		"others, the same is gone":  {[]fleet.Seen{accepted("b"), worker("gone", func(w *fleet.Seen) { w.Alive, w.Settings = false, []string{"a"} })}, true},
		"an older version is asked": {[]fleet.Seen{accepted("b"), able}, false},
	} {
		if got := otherSettings(c.workers, "team/app", "a"); (got != "") != c.told {
			t.Errorf("%s: it says %q", name, got)
		}
	}
}

// TestNotThere: a queued thread tells why none of the workers has or can make its workspace; of
// a worker of an older version nothing is known.
func TestNotThere(t *testing.T) {
	t.Parallel()
	commit, other := strings.Repeat("a", 40), strings.Repeat("b", 40)
	worker := func(machine string, lacks ...string) fleet.Seen {
		return fleet.Seen{Worker: fleet.Worker{Name: "w-" + machine, Projects: []string{"p"}, Machine: machine}, Alive: true, Lacks: lacks}
	}
	gone, draining := worker("m"), worker("m")
	gone.Alive, draining.Draining = false, true
	at := &thread.Workspace{Of: "a-1", At: "m", AtName: "build-1"}
	needs := &thread.Workspace{Of: "a-1", Baseline: "c", Bundle: "d", Needs: other + " " + commit}
	for name, c := range map[string]struct {
		workers []fleet.Seen
		in      *thread.Workspace
		want    string // in what it says; empty: it says nothing
	}{
		"none":                        {[]fleet.Seen{worker("n")}, nil, ""},
		"on a worker":                 {[]fleet.Seen{worker("n"), worker("m")}, at, ""},
		"on none":                     {[]fleet.Seen{worker("n"), gone, draining}, at, "is on build-1 alone"},
		"on an older one, maybe":      {[]fleet.Seen{worker("n"), worker("")}, at, ""},
		"no worker":                   {nil, at, ""}, // which is said already
		"all lack it":                 {[]fleet.Seen{worker("n", commit), worker("m", other, commit)}, needs, "builds upon commit aaaaaaaaaaaa, which no worker of project p has (w-n, w-m): git fetch"},
		"one has it":                  {[]fleet.Seen{worker("n", commit), worker("m")}, needs, ""},
		"it lacks another":            {[]fleet.Seen{worker("n", strings.Repeat("c", 40))}, needs, ""},
		"made before they shared it":  {[]fleet.Seen{worker("n")}, &thread.Workspace{Of: "a-1", Baseline: "c"}, "has not come along"},
		"not made":                    {[]fleet.Seen{worker("n")}, &thread.Workspace{Of: "a-1"}, ""},
		"left, and never had a start": {[]fleet.Seen{worker("n")}, &thread.Workspace{Of: "a-1", Baseline: "c", Result: "d"}, ""},
	} {
		if got := notThere(c.workers, "p", c.in); (got != "") != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: it says %q", name, got)
		}
	}
}
