package executor_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/executor/subprocess"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// bench is a project and a user in temporary folders, whose items are signed as they
// are written.
type bench struct {
	t             testing.TB
	project, user string
	key           *sign.Key
	mode          trust.Mode
	accepted      bool
	environ       []string
	primitive     *subprocess.Primitive
	confine       func(context.Context, tool.Env, *process.Command) error
	roots         resolve.Roots
	*executor.Executor
}

func newBench(t testing.TB) *bench {
	t.Helper()
	// Two names without links, as the program has them.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, project: filepath.Join(dir, "project"), user: filepath.Join(dir, "user"), mode: trust.Strict, accepted: true}
	b.environ = append(os.Environ(), "SECRET_OF_A_PROVIDER=key")
	for _, dir := range []string{b.project, b.user} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if b.key, err = sign.Generate(b.user, false, rand.Reader); err != nil {
		t.Fatal(err)
	}
	b.roots = resolve.Roots{Project: b.project, User: b.user, System: system.FS()}
	b.primitive = &subprocess.Primitive{}
	t.Cleanup(func() { _ = b.primitive.Close() })
	b.open()
	return b
}

// open makes the executor anew, as another process does.
func (b *bench) open() {
	b.t.Helper()
	builtin, err := executor.New()
	if err != nil {
		b.t.Fatal(err)
	}
	gate := &trust.Gate{
		Roots: b.roots, Shipped: system.Has,
		Own:      func() (*sign.PublicKey, error) { return b.key.Public(), nil },
		Settings: func() (trust.Settings, error) { return trust.Settings{Mode: b.mode}, nil },
	}
	b.Executor = builtin.WithItems(&chain.Builder{Resolver: resolve.New(b.roots), Trust: gate, World: chain.World{
		Environ: b.environ, Accepted: func() bool { return b.accepted }, Library: filepath.Join(b.user, "cache"), Confine: b.confine,
		Settings: func(rel string) ([]config.Layer, error) { return config.New(b.roots).Read().Layers(rel) },
	}}, map[string]chain.Primitive{chain.Subprocess: b.primitive})
}

// put writes a signed item of the project, or of the user where name begins with
// user/.
func (b *bench) put(name, text string) string {
	b.t.Helper()
	return b.write(name, text, true)
}

func (b *bench) write(name, text string, signed bool) string {
	b.t.Helper()
	dir, space := b.project, item.Project
	if rest, ok := strings.CutPrefix(name, "user/"); ok {
		dir, space, name = b.user, item.User, rest
	}
	path := filepath.Join(dir, ".ai", "tools", filepath.FromSlash(name))
	content := []byte(text)
	if ext := filepath.Ext(name); signed {
		var err error
		subject := trust.Subject{Kind: item.Tool, ID: strings.TrimSuffix(name, ext), Space: space, Path: path, Ext: ext}
		if content, err = sign.Attach(content, ext, subject.Name(), b.key, time.Now()); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// run runs a tool and returns its result as JSON.
func (b *bench) run(id, args string) (string, error) { return b.runAs(tool.Env{}, id, args) }

func (b *bench) runAs(env tool.Env, id, args string) (string, error) {
	b.t.Helper()
	return b.runIn(b.t.Context(), env, id, args)
}

func (b *bench) runIn(ctx context.Context, env tool.Env, id, args string) (string, error) {
	b.t.Helper()
	t, err := b.find(id)
	if err != nil {
		return "", err
	}
	env.Project = b.project
	result, err := b.Run(ctx, t, executor.Call{Env: env, Args: json.RawMessage(args)})
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(result)
	return string(raw), err
}

func (b *bench) find(id string) (*executor.Tool, error) {
	return b.Find(resolve.New(b.roots), id)
}

// refused is for faults of which nothing more is asked.
func (b *bench) refused(err error, code tool.Code, part string) {
	b.t.Helper()
	_ = b.fault(err, code, part)
}

// fault is the fault that an error is, with code and a part of its message.
func (b *bench) fault(err error, code tool.Code, part string) *tool.Fault {
	b.t.Helper()
	f := tool.AsFault(err)
	if f == nil || f.Code != code || !strings.Contains(f.Message, part) {
		b.t.Errorf("got %v (%+v), want %s with %q", err, f, code, part)
		return &tool.Fault{}
	}
	return f
}

// needs skips a test on a machine without an interpreter.
func needs(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed here; install it to run this test", p)
		}
	}
}
