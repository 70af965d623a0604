package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// testSystem is a machine whose home and working directory are dir.
func testSystem(dir string, env map[string]string) System {
	sys := OS()
	sys.Getenv = func(name string) string { return env[name] }
	sys.Getwd = func() (string, error) { return dir, nil }
	sys.HomeDir = func() (string, error) { return dir, nil }
	return sys
}

func rootsOf(dirs ...string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) { return dirs, nil }
}

func noRoots(context.Context) ([]string, error) { return nil, server.ErrNoRoots }

func makeDir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The project of a call: its argument, --project, the client's only root, the
// working directory with a .ai folder, in this order.
func TestWhichProject(t *testing.T) {
	t.Parallel()
	base := realDir(t)
	argument, chosen, root, empty := makeDir(t, base, "argument"), makeDir(t, base, "chosen"), makeDir(t, base, "root"), makeDir(t, base, "empty")
	working := makeDir(t, base, "working")
	makeDir(t, working, ".ai")
	tests := []struct {
		name, argument, chosen, wd string
		roots                      func(context.Context) ([]string, error)
		want, refusal              string
	}{
		{name: "argument", argument: argument, chosen: chosen, wd: working, roots: rootsOf(root), want: argument},
		{name: "chosen", chosen: chosen, wd: working, roots: rootsOf(root), want: chosen},
		{name: "root", wd: working, roots: rootsOf(root), want: root},
		{name: "several roots", wd: working, roots: rootsOf(root, chosen), want: working},
		{name: "no roots", wd: working, roots: noRoots, want: working},
		{name: "nothing", wd: empty, roots: rootsOf(root, chosen), refusal: "the client has 2 roots"},
		{name: "relative", argument: "argument", wd: base, roots: noRoots, refusal: "not an absolute path"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ps, err := newProjects(testSystem(tt.wd, nil), tt.chosen, nil, zerolog.Nop(), tt.roots)
			if err != nil {
				t.Fatal(err)
			}
			defer ps.close()
			got, err := ps.find(t.Context(), tt.argument)
			var fault *tool.Fault
			switch {
			case tt.refusal != "":
				if !errors.As(err, &fault) || fault.Code != tool.CodeNoProject || !strings.Contains(fault.Message, tt.refusal) {
					t.Errorf("got %q, %v; want it refused: %s", got, err, tt.refusal)
				}
			case err != nil || got != tt.want:
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestAllowedRoots(t *testing.T) {
	t.Parallel()
	base := realDir(t)
	inside, beside := makeDir(t, base, "work", "a"), makeDir(t, base, "workshop")
	dotted := makeDir(t, base, "work", "..b")
	link := filepath.Join(base, "work", "link")
	if err := os.Symlink(beside, link); err != nil {
		t.Fatal(err)
	}
	sys := testSystem(base, map[string]string{"USER_SPACE": base, "RYE_CACHE_DIR": base})
	ps, err := newProjects(sys, inside, []string{filepath.Join(base, "work")}, zerolog.Nop(), noRoots)
	if err != nil {
		t.Fatal(err)
	}
	defer ps.close()
	for _, dir := range []string{inside, dotted, filepath.Join(base, "work")} {
		if p, err := ps.Project(t.Context(), dir); err != nil || p.Path != dir {
			t.Errorf("%s is refused: %v", dir, err)
		}
	}
	for _, dir := range []string{beside, base, link, "/"} {
		p, err := ps.Project(t.Context(), dir)
		var fault *tool.Fault
		if !errors.As(err, &fault) || fault.Details["allowed_roots"] == nil {
			t.Errorf("%s: %v, %v; want it refused", dir, p, err)
		}
	}
	// One that led to a project is looked at again when it leads elsewhere.
	moving := filepath.Join(base, "work", "moving")
	for _, target := range []string{inside, beside} {
		_ = os.Remove(moving)
		if err := os.Symlink(target, moving); err != nil {
			t.Fatal(err)
		}
		p, err := ps.Project(t.Context(), moving)
		if (err == nil) != (target == inside) {
			t.Errorf("a link to %s: %v, %v", target, p, err)
		}
	}
	if _, err := os.Stat(filepath.Join(beside, ".ai")); err == nil {
		t.Error("a refused project was written to")
	}
	if _, err := newProjects(sys, beside, []string{inside}, zerolog.Nop(), noRoots); err == nil {
		t.Error("--project outside --allow-root is accepted")
	}
	if _, err := newProjects(sys, "", []string{filepath.Join(base, "none")}, zerolog.Nop(), noRoots); err == nil {
		t.Error("an allowed root that does not exist is accepted")
	}
}

// Every name of a folder is the same project, opened once.
func TestOneProject(t *testing.T) {
	t.Parallel()
	base := realDir(t)
	dir := makeDir(t, base, "project")
	link := filepath.Join(base, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	sys := testSystem(base, map[string]string{"USER_SPACE": base, "RYE_CACHE_DIR": base})
	sys.Now = func() time.Time { return time.Unix(1_800_000_000, 0) }
	ps, err := newProjects(sys, dir, nil, zerolog.Nop(), noRoots)
	if err != nil {
		t.Fatal(err)
	}
	ps.openFirst()
	for _, name := range []string{dir, link, dir + "/../project/"} {
		p, err := ps.Project(t.Context(), name)
		if err != nil || p.Path != dir {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if len(ps.open) != 1 {
		t.Errorf("%d projects are open", len(ps.open))
	}
	ps.close()
}

// A call that names threads and no project is about the open project that has them all, else
// about the one that has some; which of several is meant is asked.
func TestProjectOfThreads(t *testing.T) {
	t.Parallel()
	base := realDir(t)
	sys := testSystem(base, map[string]string{"USER_SPACE": base, "RYE_CACHE_DIR": base})
	ps, err := newProjects(sys, "", nil, zerolog.Nop(), noRoots)
	if err != nil {
		t.Fatal(err)
	}
	defer ps.close()
	for dir, ids := range map[string][]thread.ID{"one": {"first-1", "both-1"}, "two": {"second-1", "both-1"}} {
		p, err := ps.Project(t.Context(), makeDir(t, base, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			n := store.NewThread{ID: id, Run: thread.NewRun(), Kind: thread.KindDirective, Directive: "work", Now: sys.Now()}
			if _, _, err := p.Control.Threads.Store.Register(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		ids  []thread.ID
		want string
	}{
		{[]thread.ID{"first-1"}, "one"},
		{[]thread.ID{"second-1", "second-1"}, "two"},
		{[]thread.ID{"second-1", "both-1"}, "two"},
		{[]thread.ID{"both-1"}, "ambiguous: more than one project has threads of these ids"},
		{[]thread.ID{"first-1", "second-1"}, "ambiguous: the threads are in several projects"},
		{[]thread.ID{"first-1", "none-1"}, "one"},
		{[]thread.ID{"none-1"}, ""},
		{nil, ""}, // both
	} {
		got := ""
		p, err := ps.Holding(t.Context(), test.ids, func(string) bool { return true })
		if fault, is := errors.AsType[*tool.Fault](err); is {
			got = string(fault.Code) + ": " + fault.Error()
		}
		if p != nil {
			got = filepath.Base(p.Path)
		}
		if got != test.want {
			t.Errorf("%v are in %q, want %q", test.ids, got, test.want)
		}
	}
}

// An operation that names no thread is about the project of its client, whichever
// others are open, and threads lead a client to projects alone that it has been in.
func TestProjectOfAnOperation(t *testing.T) {
	t.Parallel()
	base := realDir(t)
	here, there := makeDir(t, base, "here"), makeDir(t, base, "there")
	home := makeDir(t, base, "home")
	sys := testSystem(base, map[string]string{"USER_SPACE": home, "RYE_CACHE_DIR": home})
	s := server.New(server.Options{Version: "test", MapError: action.Fault, OutputSchemas: true})
	ps, err := newProjects(sys, "", nil, zerolog.Nop(), s.Roots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ps.close)
	handler.Register(s, ps, handler.Groups(), operation.All())
	url := servertest.Serve(t, s, server.HTTPOptions{})
	first, second, rootless := servertest.Connect(t, url, servertest.WithRoots(there)), servertest.Connect(t, url, servertest.WithRoots(here)), servertest.Connect(t, url)

	p, err := ps.Project(t.Context(), there)
	if err != nil {
		t.Fatal(err)
	}
	n := store.NewThread{ID: "there-1", Run: thread.NewRun(), Kind: thread.KindDirective, Directive: "work", Now: sys.Now()}
	if _, _, err := p.Control.Threads.Store.Register(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	all, one := map[string]any{"max_bytes": 500}, map[string]any{"thread_id": "there-1"}
	sweep := map[string]any{"older_than": "0s", "confirm": true}
	for _, call := range []struct {
		client *servertest.Client
		tool   string
		args   map[string]any
		want   string
	}{
		{first, "list_threads", all, `there-1`},
		{second, "list_threads", all, `"count":0`},
		{second, "cleanup_threads", sweep, `"success":true`},
		{rootless, "list_threads", all, `"code":"no_project"`},
		{rootless, "cleanup_threads", sweep, `"code":"no_project"`},
		{rootless, "delete_thread", one, `"code":"no_project"`},
		{rootless, "list_threads", map[string]any{"project_path": there}, `there-1`},
		{rootless, "get_status", one, `"thread_id":"there-1"`}, // it has been there
		{rootless, "list_threads", all, `"code":"no_project"`},
	} {
		if r := call.client.Call(call.tool, call.args); !strings.Contains(string(r.JSON), call.want) {
			t.Errorf("%s %v: %s, want %s", call.tool, call.args, r.JSON, call.want)
		}
	}
	if known, err := p.Control.Threads.Store.Known(t.Context(), []thread.ID{"there-1"}); err != nil || !known["there-1"] {
		t.Errorf("the thread is gone: %v", err)
	}
}

// A thread that was started in another project than that of the server leads its client there
// again, beside ids that nobody knows, and not where the server's own project has one of the id.
func TestProjectOfAThreadElsewhere(t *testing.T) {
	t.Parallel()
	base := realDir(t)
	here, there := makeDir(t, base, "here"), makeDir(t, base, "there")
	home := makeDir(t, base, "home")
	sys := testSystem(base, map[string]string{"USER_SPACE": home, "RYE_CACHE_DIR": home})
	s := server.New(server.Options{Version: "test", MapError: action.Fault, OutputSchemas: true})
	ps, err := newProjects(sys, here, nil, zerolog.Nop(), s.Roots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ps.close)
	handler.Register(s, ps, handler.Groups(), operation.All())
	c := servertest.Start(t, s)
	for dir, ids := range map[string][]thread.ID{here: {"here-1", "both-1"}, there: {"there-1", "both-1"}} {
		c.Call("list_threads", map[string]any{"project_path": dir}) // it has been there
		p, err := ps.Project(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			n := store.NewThread{ID: id, Run: thread.NewRun(), Kind: thread.KindDirective, Directive: "work", Now: sys.Now()}
			if _, _, err := p.Control.Threads.Store.Register(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
	}
	type args = map[string]any
	for _, call := range []struct {
		tool string
		args args
		want string
	}{
		{"get_status", args{"thread_id": "there-1"}, `"thread_id":"there-1"`},
		{"get_status", args{"thread_id": "here-1"}, `"thread_id":"here-1"`},
		{"aggregate_results", args{"thread_ids": []string{"there-1", "none-1"}}, `"none-1":{"status":"not_found"`},
		{"cancel_thread", args{"thread_id": "both-1"}, `"code":"ambiguous"`},
		{"get_status", args{"thread_id": "both-1", "project_path": there}, `"thread_id":"both-1"`},
		{"aggregate_results", args{"thread_ids": []string{"there-1", "here-1"}}, `"projects":["` + here + `","` + there + `"]`},
	} {
		if r := c.Call(call.tool, call.args); !strings.Contains(string(r.JSON), call.want) {
			t.Errorf("%s %v: %s, want %s", call.tool, call.args, r.JSON, call.want)
		}
	}
}

// TestServerReconciles: a server says at its start that registry and folders
// disagree.
func TestServerReconciles(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	stray := folder.Of(placetest.Dir(dir), "stray-1")
	if err := stray.Make(); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	// One without a transcript would be what a start has left, and be removed.
	if err := errors.Join(os.WriteFile(stray.Transcript(), []byte("x\n"), 0o600), os.Chtimes(string(stray), long, long)); err != nil {
		t.Fatal(err)
	}
	logged := make(lines, 100)
	ps, err := newProjects(testSystem(dir, map[string]string{"USER_SPACE": dir}), dir, nil, zerolog.New(logged), noRoots)
	if err != nil {
		t.Fatal(err)
	}
	defer ps.close()
	ps.openFirst()
	for line := range logged {
		if strings.Contains(line, "rye-mcp threads reconcile") {
			if !strings.Contains(line, `"findings":1`) || !strings.Contains(line, `"level":"warn"`) {
				t.Error(line)
			}
			return
		}
	}
}
