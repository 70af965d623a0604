package main_test

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	home "github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// former makes a project's state as an earlier version left it: every thread.json
// signed by the user's item key, and naming no place.
func (p *place) former() {
	p.Helper()
	key, err := sign.Load(p.home())
	if err != nil {
		key, err = sign.Generate(p.home(), false, rand.Reader)
	}
	p.noError(err)
	state := placetest.Dir(p.dir)
	metas, err := filepath.Glob(filepath.Join(state, "rye", "demo", "*", "thread.json"))
	p.noError(err)
	for _, path := range metas {
		data, err := os.ReadFile(path)
		p.noError(err)
		var meta map[string]any
		p.noError(json.Unmarshal(data, &meta))
		data, err = sign.EncodeSigned(meta, key)
		p.noError(err)
		p.noError(os.WriteFile(path, data, 0o600))
	}
}

// asides are the databases that were set aside.
func (p *place) asides() []string {
	p.Helper()
	found, err := filepath.Glob(filepath.Join(placetest.Dir(p.dir), "*.db.corrupt-*Z"))
	p.noError(err)
	return found
}

// TestAttackPublishedQueue: state of an earlier version, which its user published with a thread in the queue, comes back in a repository. Its threads become the user's records, and the one in the queue is ended with how to start it again.
func TestAttackPublishedQueue(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	p.queued(placetest.Dir(p.dir))
	p.former()
	if n := p.looked(); n != 1 {
		t.Errorf("%d threads are listed, want 1", n)
	}
	p.wantNothingRan()
	said := p.command("threads", "list")
	if !strings.Contains(said, "cancelled") || len(p.asides()) != 2 {
		t.Errorf("asides %q, and\n%s", p.asides(), said)
	}
	_, stamp, _ := strings.Cut(said, "rye/demo/worker-")
	stamp, _, _ = strings.Cut(stamp, " ")
	id := "rye/demo/worker-" + stamp
	if !strings.Contains(said, "worker") || strings.Count(said, "rye/demo/worker") != 1 { // its name, beside its id
		t.Errorf("the thread has lost its name:\n%s", said)
	}
	if said := p.command("threads", "show", id); !strings.Contains(said, "start rye/demo/worker again") {
		t.Errorf("show:\n%s", said)
	}
	if said := p.command("threads", "verify", "--all"); !strings.Contains(said, "verified") {
		t.Errorf("verify:\n%s", said)
	}
	if again := p.looked(); again != 1 || len(p.asides()) != 2 {
		t.Errorf("the second look: %d threads, asides %q", again, p.asides())
	}
	p.wantNothingRan()
}

// TestTakeOverKilled ends the process that takes state over after each step. The next
// one makes it whole, and nothing is lost.
func TestTakeOverKilled(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, point := range append(home.Crashpoints(), home.CrashDatabases) {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			p := newVictim(t)
			p.queued(placetest.Dir(p.dir))
			p.former()
			env, died := p.dieAt(point, 1)
			living := p.env
			p.env = slices.Concat(p.env, env)
			p.command("threads", "list")
			if p.env = living; !died() {
				t.Error("nobody died")
			}
			if n := p.looked(); n != 1 || len(p.asides()) != 2 {
				t.Errorf("%d threads are listed, asides %q", n, p.asides())
			}
			if said := p.command("threads", "verify", "--all"); !strings.Contains(said, "verified") || strings.Contains(said, "foreign") {
				t.Errorf("verify:\n%s", said)
			}
			p.wantNothingRan()
		})
	}
}

// TestTakeOverAlive: while a thread of the earlier version runs, the databases it
// works with stay in their place.
func TestTakeOverAlive(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	state := placetest.Dir(p.dir)
	p.queued(state)
	p.former()
	locks, err := filepath.Glob(filepath.Join(state, "rye", "demo", "*"))
	if err != nil || len(locks) != 1 {
		t.Fatalf("%q, %v", locks, err)
	}
	lock, err := process.Acquire(filepath.Join(locks[0], "thread.lock"))
	p.noError(err)
	if n := p.looked(); n != 1 || len(p.asides()) > 0 {
		t.Errorf("%d threads are listed, asides %q", n, p.asides())
	}
	p.noError(lock.Release())
	if said := p.command("threads", "list", "--json"); !strings.Contains(said, `"created"`) && !strings.Contains(said, `"running"`) &&
		!strings.Contains(said, `"completed"`) {
		t.Errorf("the thread in the queue: %s", said)
	}
}

// TestAdoptState: a person can believe what threads of another key have left, and
// sees before what that means. Nothing of it is started.
func TestAdoptState(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	p.ownThread()
	user := p.home()
	p.noError(os.Rename(user, user+"-before")) // another machine, or a container
	p.noError(os.MkdirAll(user, 0o700))
	if n := p.looked(); n != 0 {
		t.Errorf("%d threads of another home are listed", n)
	}
	if said := p.command("threads", "list"); !strings.Contains(said, "1 thread of key ") {
		t.Errorf("list: %s", said)
	}
	said := p.command("trust", "--adopt-state", "--yes")
	for _, want := range []string{"was left by 1 thread", "of nobody you know", "counts for what its threads left here"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing:\n%s", want, said)
		}
	}
	if n := p.looked(); n != 1 {
		t.Errorf("%d threads are listed after that", n)
	}
	if said := p.command("threads", "verify", "--all"); !strings.Contains(said, "verified") || strings.Contains(said, "foreign") {
		t.Errorf("verify:\n%s", said)
	}
	asked := p.model.requests()
	if said := p.command("trust", "--adopt-state", "--yes"); !strings.Contains(said, "no state that could be adopted") {
		t.Errorf("again:\n%s", said)
	}
	if p.model.requests() != asked {
		t.Error("something was started")
	}
}

// TestServerBeforeKey: a server that was started before there was any key runs
// threads, signs them, and goes on when the item key is made or replaced.
func TestServerBeforeKey(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	p.write(".ai/directives/own.md", []byte("# Own\n\n```xml\n<directive name=\"own\" version=\"1.0.0\"><metadata><description>Own work</description>"+
		"<model tier=\"fast\" /><permissions /></metadata></directive>\n```\n\nWork.\n"))
	h := p.serve()
	if list := must[struct{ Count int }](h, "list_threads", args{}); list.Count != 0 {
		t.Errorf("%d threads", list.Count)
	}
	if _, err := os.Lstat(filepath.Join(p.dir, ".ai", "state")); err == nil {
		t.Error("looking has made state")
	}
	for _, command := range []string{"keys generate", "keys generate --force"} {
		p.command(strings.Fields(command)...)
		if said := p.command("sign", "--type", "directive", "own"); !strings.Contains(said, "signed") {
			t.Fatalf("sign: %s", said)
		}
		result := must[struct {
			Success bool
			Status  string
		}](h, "rye_execute", args{"item_type": "directive", "item_id": "own", "thread": "fork"})
		if !result.Success || result.Status != "completed" {
			t.Errorf("after %s: %+v", command, result)
		}
	}
	h.close()
	if said := p.command("threads", "verify", "--all"); strings.Count(said, "verified") != 2 {
		t.Errorf("verify:\n%s", said)
	}
}

// TestNoUserSpace: without a user space that can be written looking works, and a
// start says what to do.
func TestNoUserSpace(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newVictim(t)
	keys := filepath.Join(p.home(), ".ai", "config", "keys")
	p.noError(os.MkdirAll(filepath.Dir(keys), 0o700))
	p.noError(os.WriteFile(keys, nil, 0o600)) // root may write everywhere but below a file
	if n := p.looked(); n != 0 {
		t.Errorf("%d threads", n)
	}
	said := p.command("run", "rye/demo/worker", "--input", "part=x")
	if !strings.Contains(said, "Try:   USER_SPACE=$(mktemp -d)") {
		t.Errorf("run: %s", said)
	}
	if _, err := os.Lstat(filepath.Join(p.dir, ".ai", "state")); err == nil {
		t.Error("it has made state")
	}
}
