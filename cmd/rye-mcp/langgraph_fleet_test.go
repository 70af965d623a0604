package main_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/langgraph/langgraphtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

// worker starts a worker of the project, on a machine, and waits until it is at work. It is
// asked to end with the test.
func (p *place) worker(name string, env []string) {
	p.Helper()
	cmd := exec.Command(p.program, "worker", "--project", p.dir, "--name", name)
	cmd.Dir, cmd.Env, cmd.Stderr = p.dir, slices.Concat(p.env, env), p.Output()
	p.noError(cmd.Start())
	p.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			p.Errorf("worker %s: %v", name, err)
		}
	})
	p.until(func() (bool, string) {
		workers := p.mustCLI(p.dir, "workers", "list")
		return strings.Contains(workers, name), "no worker has come: " + workers
	})
}

// TestMirroredFromAnywhere: threads on PostgreSQL are copied by the machine that has the
// mirror, whichever machine starts, runs or deletes them; with a worker of that machine
// nobody there does anything for it.
func TestMirroredFromAnywhere(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	mirrorFromAnywhere(t, langgraphtest.New(t).Setting())
}

// mirrorFromAnywhere is the life of threads of several machines, on a server.
func mirrorFromAnywhere(t *testing.T, url string) {
	p := newPlace(t, mirroredProject)
	_, err := sign.EnsureState(p.home(), nil)
	p.noError(err)
	p.env = append(p.env, storeurl.Variable+"="+pgtest.Server(t))
	has := p.machine("has") // the mirror
	there := func(args ...string) string {
		t.Helper()
		out, err := p.cli(p.dir, has, args...)
		if err != nil {
			t.Fatalf("there: rye-mcp %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	at, err := langgraph.ParsePlace(url)
	p.noError(err)
	c := langgraph.New(langgraph.Options{Place: at, Now: time.Now})
	t.Cleanup(c.Close)
	t.Cleanup(func() {
		if t.Failed() {
			out, err := p.cli(p.dir, has, "store", "status")
			t.Logf("%s %v", out, err)
		}
	})
	there("langgraph", "init", url)

	// Started there, it runs on a worker that has no mirror.
	p.worker("bare", nil)
	there("run", "one")
	id := latestHere(p)
	if _, said := wantCopy(p, c, id, "completed"); !strings.HasSuffix(said, " ai:Written.") {
		t.Errorf("%s says there: %s", id, said)
	}
	if found := copies(p, c, id); found[0].Text("rye_project") == "" || strings.Contains(found[0].Text("rye_project"), "home") {
		t.Errorf("%+v", found)
	}

	// Started here, it is sent with the next command there.
	p.mustCLI(p.dir, "run", "one")
	second := latestHere(p)
	if found := copies(p, c, second); len(found) > 0 {
		t.Errorf("who has no mirror has sent %+v", found)
	}
	wantLine(t, p.mustCLI(p.dir, "store", "status"), `mirror +of other machines \([0-9a-f]{12}\): 1 thread due, the oldest for \d+s`)
	there("threads", "list")
	wantCopy(p, c, second, "completed")
	wantLine(t, there("store", "status"), `mirror +(nothing is due|1 thread due, .*)(; \S+ sends)?`)

	// With a worker there, nobody has to do anything; deletions follow.
	p.worker("sends", has)
	p.mustCLI(p.dir, "run", "one")
	third := latestHere(p)
	wantCopy(p, c, third, "completed")
	p.mustCLI(p.dir, "threads", "delete", id, second, "--yes")
	p.until(func() (bool, string) {
		return len(copies(p, c, id))+len(copies(p, c, second)) == 0, "copies of what was deleted are still there"
	})
	if out := there("langgraph", "sync"); !strings.Contains(out, "Nothing differs.") {
		t.Errorf("sync: %s", out)
	}
	p.until(func() (bool, string) {
		left, err := processesIn(filepath.Dir(p.dir))
		left = slices.DeleteFunc(left, func(l string) bool { return strings.Contains(l, " worker ") })
		return err == nil && len(left) == 0, strings.Join(left, "\n")
	})
}
