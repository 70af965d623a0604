package main_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rye-mcp/rye-mcp/orchestrator/relocate"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgstoretest"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

// scriptsOnPostgres are scripts that are run again with the threads on PostgreSQL: the
// cheapest for each thing that is done with threads.
var scriptsOnPostgres = []string{"cli_stop", "resume_mcp", "thread_delete", "thread_queue", "threads_map"}

// TestScriptPostgres: commands do the same where the rows of threads are on a server. The
// scripts of testdata/postgres are about the server itself.
func TestScriptPostgres(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	pgtest.Shared(t)
	files := scriptsIn(t, "postgres")
	for _, name := range scriptsOnPostgres {
		files = append(files, filepath.Join("testdata", "script", name+".txtar"))
	}
	params := scriptParams(files)
	params.Cmds["noleftovers"] = func(ts *testscript.TestScript, _ bool, _ []string) {
		ts.Check(settledOnServer(ts.Getenv("HOME"), ts.Getenv("WORK")))
	}
	setup := params.Setup
	params.Setup = func(env *testscript.Env) error {
		env.Setenv(storeurl.Variable, pgtest.Server(t))
		return setup(env)
	}
	testscript.Run(t, params)
}

// settledOnServer says what is left on this machine of threads that are kept elsewhere:
// nothing is to be in the project.
func settledOnServer(home, project string) error {
	if _, err := os.Stat(filepath.Join(project, ".ai", "state", "threads")); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there are threads in the project: %w", err)
	}
	copies, err := filepath.Glob(filepath.Join(home, ".ai", "state", "fleet", "*", "threads"))
	if err == nil && len(copies) == 0 {
		err = errors.New("no copy of what is on the server")
	}
	return err
}

// storeProject is a project with threads on this machine, and a server.
const storeProject = `
-- .ai/directives/work.md --
# Work
` + "```xml" + `
<directive name="work" version="1.0.0">
  <metadata><model tier="fast" /></metadata>
</directive>
` + "```" + `
-- .ai/config/agent/store.yaml --
store: {project: team/app}
-- model.yaml --
turns:
  - text: done
`

// rye runs a command of a project, with more in its environment.
func (p *place) rye(env []string, args ...string) (out string, err error) {
	p.Helper()
	cmd := exec.Command(p.program, args...)
	cmd.Dir, cmd.Env = p.dir, slices.Concat(p.env, env)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func (p *place) ryes(env []string, args ...string) string {
	p.Helper()
	out, err := p.rye(env, args...)
	if err != nil {
		p.Fatalf("rye-mcp %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TestStoreMigrateKilled: a move that is killed at any step is called again, there and
// back. All threads are as they were, verified with the snapshots of the items that they work
// by, and so is memory: nothing of it is left in the old place, and nothing that was
// forgotten comes back.
func TestStoreMigrateKilled(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	url := pgtest.Server(t)
	p := newPlace(t, storeProject)
	p.write(".ai/config/agent/agent.yaml", []byte("threads: {snapshot: always}\n"))
	at := map[bool][]string{false: {storeurl.Variable + "=local"}, true: {storeurl.Variable + "=" + url}}
	for range 2 {
		p.ryes(at[false], "run", "work")
	}
	p.ryes(at[false], "config", "set", "memory", "enabled", "true", "--user")
	for _, title := range []string{"Harbour", "Lighthouse", "Forgotten"} {
		p.ryes(at[false], "memory", "add", "--kind", "decision", title, "The "+title+" service has a text of its own.")
	}
	noted := func(there bool) string { return p.ryes(at[there], "memory", "export", "--json") }
	shown := func(there bool) string { return p.ryes(at[there], "threads", "list", "--json") + noted(there) }
	verified := func(there bool) string { return p.ryes(at[there], "threads", "verify", "--all") }
	want, sound, there := shown(false), verified(false), false
	key := regexp.MustCompile(`"key": "([0-9a-f]+)",\s+"kind": "decision",\s+"title": "Forgotten"`).FindStringSubmatch(noted(false))
	if key == nil {
		t.Fatalf("not noted: %s", want)
	}
	for _, point := range relocate.Crashpoints() {
		to := map[bool]string{false: url, true: "local"}[there]
		env, died := p.dieAt(point, 1)
		if out, err := p.rye(slices.Concat(at[there], env), "store", "migrate", "--to", to); err == nil || !died() {
			t.Fatalf("not killed at %s: %v\n%s", point, err, out)
		}
		if point == relocate.CrashRetired { // which is the end, but nobody else knows
			if out, err := p.rye(at[!there], "threads", "list"); err == nil || !strings.Contains(out, "being moved here") {
				t.Errorf("%s: the new place: %v\n%s", point, err, out)
			}
			if told := p.ryes(at[there], "store", "migrate", "--to", to); !strings.Contains(told, "all was moved already") {
				t.Errorf("%s: it tells\n%s", point, told)
			}
		} else {
			if got := shown(there); got != want {
				t.Errorf("%s: the old place has\n%s\nwant\n%s", point, got, want)
			}
			if told := p.ryes(at[there], "store", "migrate", "--to", to); !strings.Contains(told, "1 snapshot of items") || strings.Contains(told, "Warning") {
				t.Errorf("%s: it tells\n%s", point, told)
			}
			got, err := p.rye(at[there], "memory", "export", "--json")
			if strings.Contains(got, "Lighthouse") || err != nil && !strings.Contains(got, "were moved to") { // a server makes no such project anew
				t.Errorf("%s: the old place still has noted\n%s", point, got)
			}
		}
		there = !there
		if got := shown(there); got != want {
			t.Errorf("%s: the new place has\n%s\nwant\n%s", point, got, want)
		}
		if got := verified(there); got != sound {
			t.Errorf("%s: %s\nwant %s", point, got, sound)
		}
		if left := p.ryes(at[!there], "threads", "list"); !strings.Contains(left, "no threads") {
			t.Errorf("%s: the old place still has\n%s", point, left)
		}
		if strings.Contains(want, "Forgotten") { // it is still in what was put aside
			p.ryes(at[there], "memory", "forget", key[1], "--yes")
			want = shown(there)
		}
	}
}

// TestStoreMigrateChanged: threads that run in the old place after a move was cut short are
// moved when it is called again, there and back. Until then the new place is refused, and a
// project is not taken from under its workers.
func TestStoreMigrateChanged(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	url := pgtest.Server(t)
	p := newPlace(t, storeProject)
	at := map[bool][]string{false: {storeurl.Variable + "=local"}, true: {storeurl.Variable + "=" + url}}
	p.ryes(at[false], "run", "work")
	for _, there := range []bool{false, true} {
		to := map[bool]string{false: url, true: "local"}[there]
		env, died := p.dieAt(relocate.CrashRows, 1)
		if out, err := p.rye(slices.Concat(at[there], env), "store", "migrate", "--to", to); err == nil || !died() {
			t.Fatalf("not killed: %v\n%s", err, out)
		}
		for _, args := range [][]string{{"threads", "list"}, {"run", "work"}} {
			if out, err := p.rye(at[!there], args...); err == nil || !strings.Contains(out, "being moved here") || !strings.Contains(out, "store migrate") {
				t.Errorf("%v in the new place: %v\n%s", args, err, out)
			}
		}
		p.ryes(at[there], "run", "work")
		want := p.ryes(at[there], "threads", "list", "--json")
		if there {
			p.refusedUnderWorker(url, at[there], to)
		}
		p.ryes(at[there], "store", "migrate", "--to", to)
		if got := p.ryes(at[!there], "threads", "list", "--json"); got != want {
			t.Errorf("the new place has\n%s\nwant\n%s", got, want)
		}
		p.ryes(at[!there], "threads", "verify", "--all")
	}
	if out, err := p.rye(at[true], "run", "work"); err == nil || !strings.Contains(out, "the threads of this project were moved to ") {
		t.Errorf("begun anew by the old address: %v\n%s", err, out)
	}
}

// TestStoreMigrateBegunAnew: a move is killed when the old place was put aside, and threads run
// there before it is called again. What was moved is opened, and not put aside for what came
// after it.
func TestStoreMigrateBegunAnew(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	url := pgtest.Server(t)
	p := newPlace(t, storeProject)
	here, there := []string{storeurl.Variable + "=local"}, []string{storeurl.Variable + "=" + url}
	p.ryes(here, "run", "work")
	want := p.ryes(here, "threads", "list", "--json")
	env, died := p.dieAt(relocate.CrashRetired, 1)
	if out, err := p.rye(slices.Concat(here, env), "store", "migrate", "--to", url); err == nil || !died() {
		t.Fatalf("not killed: %v\n%s", err, out)
	}
	p.ryes(here, "run", "work")
	began := p.ryes(here, "threads", "list", "--json")
	for _, args := range [][]string{{"--dry-run"}, {}, {}} {
		if out, err := p.rye(here, append([]string{"store", "migrate", "--to", url}, args...)...); err == nil || !strings.Contains(out, "1 threads are there") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	if got := p.ryes(there, "threads", "list", "--json"); got != want {
		t.Errorf("the new place has\n%s\nwant\n%s", got, want)
	}
	if got := p.ryes(here, "threads", "list", "--json"); got != began {
		t.Errorf("the old place has\n%s\nwant\n%s", got, began)
	}
}

// refusedUnderWorker has a worker of the project alive while its threads are to be moved.
func (p *place) refusedUnderWorker(url string, env []string, to string) {
	p.Helper()
	workers := &fleet.Fleet{Pool: pgstoretest.ConnectTo(p, url).Pool(), TTL: time.Hour}
	lease, err := workers.Join(p.Context(), fleet.Worker{Name: "busy", Slots: 1, Projects: []string{"team/app"}})
	if err != nil {
		p.Fatal(err)
	}
	if out, err := p.rye(env, "store", "migrate", "--to", to); err == nil || !strings.Contains(out, "the project has workers: busy") {
		p.Errorf("under a worker: %v\n%s", err, out)
	}
	if err := lease.Leave(p.Context()); err != nil {
		p.Error(err)
	}
}
