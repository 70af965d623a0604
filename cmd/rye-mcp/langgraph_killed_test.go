package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/mirror"
	"github.com/rye-mcp/rye-mcp/runtime/langgraph/langgraphtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

// killedSender is a step at which a sender's process is killed, when it is come to for the
// n-th time.
type killedSender struct {
	point thread.Crashpoint
	n     int
}

// TestKilledSender: a sender's process is killed between every two steps in the life of a
// thread: made, a turn, ended, deleted. The next sender, here a person's sync, brings the
// copy to what the thread is, with everything once.
func TestKilledSender(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for kept, killed := range map[string][]killedSender{
		"files": {{mirror.CrashCreated, 1}, {mirror.CrashState, 2}}, "postgres": {{mirror.CrashState, 1}, {mirror.CrashPatched, 2}},
	} {
		t.Run(kept, func(t *testing.T) {
			t.Parallel()
			p, c := mirrored(t, langgraphtest.New(t).Setting())
			if kept == "postgres" {
				p.env = append(p.env, storeurl.Variable+"="+pgtest.Server(t))
			}
			if longtest.Soak() {
				killed = nil
				for _, point := range []thread.Crashpoint{mirror.CrashTaken, mirror.CrashCreated, mirror.CrashState, mirror.CrashPatched} {
					for n := range 5 {
						killed = append(killed, killedSender{point, n + 1})
					}
				}
			}
			p.write("one.txt", nil) // each run finds it there
			p.command("run", "one")
			_, want := wantCopy(p, c, latestHere(p), "completed")
			for i, k := range killed {
				p.killSender(k, "run", "one")
				id := latestHere(p)
				if _, said := wantCopy(p, c, id, "completed"); said != want || len(copies(p, c, id)) != 1 {
					t.Errorf("%v: %d copies, which say: %s\nwant: %s", k, len(copies(p, c, id)), said, want)
				}
				at := killedSender{[]thread.Crashpoint{mirror.CrashTaken, mirror.CrashDeleted}[i%2], 1}
				if p.killSender(at, "threads", "delete", id, "--yes"); len(copies(p, c, id)) > 0 {
					t.Errorf("%v: the copy of what was deleted is still there", at)
				}
			}
		})
	}
}

// killSender runs a command whose sender is killed, if it comes to that step so often, and
// sends what is due then.
func (p *place) killSender(k killedSender, command ...string) {
	p.Helper()
	env, died := p.dieAt(k.point, k.n)
	out, err := p.cli(p.dir, env, command...)
	if err != nil {
		p.Fatalf("%v: %v\n%s", k, err, out)
	}
	p.until(func() (bool, string) {
		left, err := processesIn(filepath.Dir(p.dir))
		return err == nil && (died() || len(left) == 0), fmt.Sprint("still there: ", left, err)
	})
	if k.n == 1 && !died() {
		p.Errorf("%v: nobody was killed", k)
	}
	if out := p.mustCLI(p.dir, "langgraph", "sync"); !strings.Contains(out, "Nothing differs.") {
		p.Errorf("%v: sync: %s", k, out)
	}
}
