package hook_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files are the settings of a scene, empty for none.
type files struct{ user, project, system string }

// load reads hooks from real files.
func load(t testing.TB, f files) (hook.Set, []string, error) {
	t.Helper()
	return loadIn(t, t.TempDir(), f)
}

// fataler is what testing and rapid have in common.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// loadIn is load with a folder that may hold the files of an earlier load.
func loadIn(t fataler, dir string, f files) (hook.Set, []string, error) {
	t.Helper()
	roots := resolve.Roots{
		User: filepath.Join(dir, "user"), Project: filepath.Join(dir, "project"), System: fstest.MapFS{
			"config/agent/hook_conditions.yaml": &fstest.MapFile{Data: []byte(f.system)},
		},
	}
	for root, content := range map[string]string{roots.User: f.user, roots.Project: f.project} {
		path := filepath.Join(root, ".ai", "config", "agent", "hooks.yaml")
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trusttest.AcceptSettings(t, roots)
	return hook.Load(config.New(roots).Read(), nil)
}

// directive reads the hooks of a directive whose <hooks> are given.
func directive(t fataler, id, hooks string) hook.DirectiveHooks {
	t.Helper()
	text := "# T\n\n```xml\n<directive name=\"" + filepath.Base(id) + "\" version=\"1\"><metadata><hooks>\n" + hooks +
		"\n</hooks></metadata></directive>\n```\n"
	doc, err := parse.Directive(id+".md", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return hook.DirectiveHooks{Directive: id, Path: id + ".md", Hooks: doc.Hooks}
}

// ofXML is a set with the hooks of one directive.
func ofXML(t testing.TB, hooks string) hook.Set {
	t.Helper()
	set, err := hook.Set{}.WithDirectives(directive(t, "d", hooks))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// scene is an engine whose runner answers from a function and takes down calls.
type scene struct {
	hook.Engine
	mu    sync.Mutex
	calls []hook.Call
	fired []transcript.HookFired
	run   func(ctx context.Context, c hook.Call) (hook.Result, error)
}

func newScene(set hook.Set) *scene {
	s := &scene{}
	now := time.Unix(0, 0)
	s.Engine = hook.Engine{
		Hooks: set, Runner: s,
		Wrap: func(name, id, text string) string { return "<" + name + " id=" + id + ">" + text + "</" + name + ">" },
		Record: func(f transcript.HookFired) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.fired = append(s.fired, f)
		},
		Now: func() time.Time { now = now.Add(time.Millisecond); return now },
	}
	return s
}

func (s *scene) Run(ctx context.Context, c hook.Call) (hook.Result, error) {
	s.mu.Lock()
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	if s.run != nil {
		return s.run(ctx, c)
	}
	return hook.Result{Text: "text of " + c.Action.ItemID}, nil
}

// called are the ids of the items that were called, in order.
func (s *scene) called() string {
	ids := make([]string, len(s.calls))
	for i, c := range s.calls {
		ids[i] = c.Action.ItemID
	}
	return strings.Join(ids, " ")
}

// ids are those of the hooks that fired, in order.
func (s *scene) ids() string {
	ids := make([]string, len(s.fired))
	for i, f := range s.fired {
		ids[i] = f.HookID
	}
	return strings.Join(ids, " ")
}
