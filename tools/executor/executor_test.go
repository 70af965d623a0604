package executor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type text struct {
	Text string `json:"text,omitempty"`
}

func newExecutor(t *testing.T) *Executor {
	t.Helper()
	echo := func(_ context.Context, env tool.Env, in text) (any, error) { return env.Project + " " + in.Text, nil }
	e, err := New(
		tool.New(tool.Definition{ID: "test/echo", Paged: true}, echo),
		tool.New(tool.Definition{ID: "test/line", CommandLine: "text"}, echo),
		panics{},
	)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// panics is a tool that was not made by tool.New, which guards its own.
type panics struct{}

func (panics) Definition() tool.Definition { return tool.Definition{ID: "test/panics"} }

func (panics) Call(context.Context, tool.Env, json.RawMessage) (any, error) { panic("lost its head") }

func TestOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"test/echo.yaml": "executor_id: rye/core/builtin\n", "test/none.yaml": "description: names none\n",
		"test/claims.yaml": "executor_id: rye/core/builtin\n", "test/other.yaml": "executor_id: test/own\n", "test/script.py": "run()\n",
	} {
		path := filepath.Join(dir, ".ai", "tools", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	resolver := resolve.New(resolve.Roots{Project: dir, System: fstest.MapFS{}})
	e := newExecutor(t)
	for id, refusal := range map[string]string{
		"test/echo": "", "test/none": "built-in tools only", "test/claims": "this version has no such tool",
		"test/other": "built-in tools only", "test/script": "built-in tools only",
	} {
		found, err := resolver.Find(item.Tool, id)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Of(found)
		if refusal != "" {
			f, isFault := errors.AsType[*tool.Fault](err)
			if !isFault || f.Code != tool.CodeUnsupported || !strings.Contains(f.Message, refusal) {
				t.Errorf("%s: %v, want %q", id, err, refusal)
			}
			continue
		}
		if err != nil || !got.Definition.Paged || len(got.Chain) != 2 || got.Chain[0].Path != found.Path || got.Chain[1] != (tool.Link{ItemID: chain.Builtin, Space: item.System}) {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	e, all := newExecutor(t), func(string) bool { return true }
	if _, known := e.Named("test/none"); known || e.Has("test/none") || !e.Has("test/line") || len(e.Definitions(all)) != 3 {
		t.Errorf("definitions %v", e.Definitions(all))
	}
	for _, c := range []struct {
		id      string
		args    string
		secrets Secrets
		want    string
		fails   func(error) bool
	}{
		{"test/echo", `{"text":"a {secret:token}"}`, nil, "/p a {secret:token}", nil},
		{"test/echo", `{"text":"a {secret:token}"}`, quoted{}, "/p a " + quotedSecret, nil},
		{"test/line", `{"text":"a {secret:token}"}`, quoted{}, `/p a 'it'\''s "$(id)"'`, nil},
		{"test/echo", "", nil, "/p ", nil},
		{"test/echo", `{"texts":"a"}`, nil, "", func(err error) bool { return errors.As(err, new(*tool.Fault)) }},
		{"test/panics", "", nil, "", func(err error) bool {
			p, ok := errors.AsType[*tool.PanicError](err)
			return ok && p.ToolID == "test/panics" && p.Value == "lost its head" && len(p.Stack) > 0
		}},
	} {
		found, known := e.Named(c.id)
		if !known {
			t.Fatal(c.id)
		}
		got, err := e.Run(t.Context(), found, Call{Env: tool.Env{Project: "/p"}, Args: json.RawMessage(c.args), Secrets: c.secrets})
		if c.fails != nil {
			if !c.fails(err) {
				t.Errorf("%s %s: %v, %v", c.id, c.args, got, err)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%s %s: %v, %v; want %s", c.id, c.args, got, err, c.want)
		}
	}
}

func TestNewRefusesTheSameIDTwice(t *testing.T) {
	t.Parallel()
	if _, err := New(panics{}, panics{}); err == nil {
		t.Error("taken")
	}
}
