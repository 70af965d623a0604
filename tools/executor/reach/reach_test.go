package reach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/confine"
	"github.com/rye-mcp/rye-mcp/tools/confine/confinetest"
	"github.com/rye-mcp/rye-mcp/tools/confine/inside"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestMain(m *testing.M) {
	inside.Main(os.Args, os.Environ())
	os.Exit(m.Run())
}

// plan is that of a chain whose elements declare these.
func plan(elements ...map[string]any) *chain.Plan {
	p := &chain.Plan{Chain: &chain.Chain{}}
	for _, metadata := range elements {
		p.Chain.Elements = append(p.Chain.Elements, chain.Element{
			Found: &resolve.Found{Entry: resolve.Entry{Kind: item.Tool, ID: "test/tool"}}, Doc: &item.ToolDoc{Metadata: metadata},
		})
	}
	return p.Given(func(string) (string, bool) { return "s3cret", true }, nil)
}

func TestDeclared(t *testing.T) {
	t.Parallel()
	server := plan(map[string]any{"network": true})
	server.Chain.Server = &chain.Element{Doc: &item.ToolDoc{Metadata: map[string]any{"network": []any{"h"}}}}
	for name, test := range map[string]struct {
		plan  *chain.Plan
		want  declaration
		wrong string
	}{
		"nothing":     {plan(map[string]any{}, map[string]any{}), declaration{}, ""},
		"the nearest": {plan(map[string]any{"network": []any{"B.example.com", "a"}}, map[string]any{"network": true, "writable": []any{"~/.x"}}), declaration{confine.Network{Hosts: []string{"a", "b.example.com"}}, []string{"~/.x"}}, ""},
		"the server":  {server, declaration{network: confine.Network{Hosts: []string{"h"}}}, ""},
		"credentials": {plan(map[string]any{"credentials": []any{map[string]any{"url": "https://api.example.com", "value": "Bearer ${KEY}"}}}), declaration{network: confine.Network{Credentials: []confine.Credential{{Host: "api.example.com", URL: "https://api.example.com", Header: "Authorization", Value: "Bearer s3cret"}}}}, ""},
		"no TLS":      {plan(map[string]any{"credentials": []any{map[string]any{"url": "http://api.example.com", "value": "x"}}}), declaration{}, "credentials"},
		"no list":     {plan(map[string]any{"writable": "/x"}), declaration{}, "list of paths"},
		"relative":    {plan(map[string]any{"writable": []any{"../x"}}), declaration{}, "begins with /"},
		"no host":     {plan(map[string]any{"network": []any{"http://x"}}), declaration{}, "is not a host"},
		"no network":  {plan(map[string]any{"network": "on"}), declaration{}, "true, false or a list"},
	} {
		got, err := declared(test.plan)
		if test.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func newReach(t *testing.T, s Settings) *Reach {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &Reach{Confiner: &confine.Confiner{}, Project: filepath.Join(root, "project"), User: filepath.Join(root, "home"), Home: filepath.Join(root, "home"), Temp: filepath.Join(root, "tmp"), Cache: filepath.Join(root, "cache"), Scratch: filepath.Join(root, "tmp", "scratch")}
	r.Settings = func() (Settings, error) { return s, nil }
	for _, dir := range []string{"project/.ai/config", "home/.ai/config/keys", "home/more", "home/.x", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "home/.ai/config/keys/k"), []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r.Confiner.Self, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPlan shows that what a tool declares and what the settings allow are added to
// what every command may do, and that nothing else is.
func TestPlan(t *testing.T) {
	t.Parallel()
	r := newReach(t, Settings{Mode: confine.Required, Writable: []string{"~/more"}})
	command := process.Command{Path: "sh", Dir: r.Project, Env: process.ToolEnv(os.Environ(), "HOME="+r.Home), Args: []string{"-c", `
		echo x > a && echo project; echo x > ../tmp/a && echo temp; echo x > ~/more/a && echo settings; echo x > ~/.x/a && echo declared
		echo x > "$XDG_CACHE_HOME/a" && echo cache; echo x > ~/a && echo HOME; echo x > .ai/config/a && echo CONFIG; cat ~/.ai/config/keys/k; true`}}
	p := plan(map[string]any{"writable": []any{"~/.x"}})
	err := r.Plan(t.Context(), p, &command)
	if f, ok := errors.AsType[*tool.Fault](err); ok && f.Code == tool.CodeUnsupported {
		confinetest.Skip(t, f.Message)
	}
	if err != nil {
		t.Fatal(err)
	}
	declares := plan(map[string]any{"network": []any{"example.com"}})
	if err := r.Plan(t.Context(), declares, &process.Command{Path: "sh", Dir: r.Project}); err != nil || !p.Offline || declares.Offline {
		t.Errorf("offline %v and %v, %v", p.Offline, declares.Offline, err)
	}
	got, err := process.Run(t.Context(), command)
	if err != nil || string(got.Stdout) != "project\ntemp\nsettings\ndeclared\ncache\n" {
		t.Errorf("%s%s, %v", got.Stdout, got.Stderr, err)
	}
}

// TestAttackMadeFirst: a command makes what is not there yet and what it would keep: the settings of the project, and git folders of this program, which lie where it may write. All of it is read-only or hidden for it.
func TestAttackMadeFirst(t *testing.T) {
	t.Parallel()
	r := newReach(t, Settings{Mode: confine.Required})
	if err := os.Remove(filepath.Join(r.Project, ".ai", "config")); err != nil {
		t.Fatal(err)
	}
	command := process.Command{Path: "sh", Dir: r.Project, Env: process.ToolEnv(os.Environ()), Args: []string{"-c", `
		mkdir -p .ai/config/agent && echo SETTINGS; mkdir -p ../tmp/scratch/rye-git-1 && echo SCRATCH; mv .ai .old && echo MOVED; mv ../tmp/scratch ../tmp/old && echo MOVED
		mkdir .ai/directives && echo items`}}
	err := r.Shell(t.Context(), tool.Env{Project: r.Project}, &command)
	if f, ok := errors.AsType[*tool.Fault](err); ok && f.Code == tool.CodeUnsupported {
		confinetest.Skip(t, f.Message)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := process.Run(t.Context(), command)
	if err != nil || string(got.Stdout) != "items\n" {
		t.Errorf("%s%s, %v", got.Stdout, got.Stderr, err)
	}
}

// TestAttackDoors: a command asks a program of the person's, which nothing confines, to do what it may not do itself. It does not find the socket, unless the person's settings name it.
func TestAttackDoors(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "", "socket": "socket\n"} {
		r := newReach(t, Settings{Mode: confine.Required})
		dir := filepath.Join(r.Temp, fmt.Sprintf("tmux-%d", os.Getuid()))
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "socket"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if given != "" {
			r.Settings = func() (Settings, error) {
				return Settings{Mode: confine.Required, Writable: []string{filepath.Join(dir, given)}}, nil
			}
		}
		command := process.Command{Path: "ls", Args: []string{dir}, Dir: r.Project, Env: process.ToolEnv(os.Environ())}
		err := r.Shell(t.Context(), tool.Env{Project: r.Project}, &command)
		if f, ok := errors.AsType[*tool.Fault](err); ok && f.Code == tool.CodeUnsupported {
			confinetest.Skip(t, f.Message)
		}
		got, err := process.Run(t.Context(), command)
		if err != nil || string(got.Stdout) != want {
			t.Errorf("with %q allowed: %s%s, %v", given, got.Stdout, got.Stderr, err)
		}
	}
}

// TestQuestion: what is asked of a program that runs tools changes nothing outside of the project.
func TestQuestion(t *testing.T) {
	t.Parallel()
	r := newReach(t, Settings{Mode: confine.Required})
	outside := filepath.Join(filepath.Dir(r.Project), "outside")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	command := process.Command{Path: "sh", Dir: r.Project, Env: process.ToolEnv(os.Environ()), Args: []string{"-c", "touch " + outside + "/x && echo ESCAPED; echo 22.18"}}
	err := r.Question(t.Context(), tool.Env{Project: r.Project}, &command)
	if f, ok := errors.AsType[*tool.Fault](err); ok && f.Code == tool.CodeUnsupported {
		confinetest.Skip(t, f.Message)
	}
	got, ran := process.Run(t.Context(), command)
	if err := errors.Join(err, ran); err != nil || string(got.Stdout) != "22.18\n" {
		t.Errorf("%s%s, %v", got.Stdout, got.Stderr, err)
	}
}

// TestWithoutItems: a command in a folder without .ai leaves none there.
func TestWithoutItems(t *testing.T) {
	t.Parallel()
	r := newReach(t, Settings{Mode: confine.WhenAvailable})
	r.Project = filepath.Join(r.Temp, "plain")
	if err := os.Mkdir(r.Project, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := r.Shell(t.Context(), tool.Env{Project: r.Project}, &process.Command{Path: "true"}); err != nil {
		t.Fatal(err)
	}
	if found, err := os.ReadDir(r.Project); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestAttackUnconfined: a system confines nothing, and the settings take what there is. The caller is told that the tool was not confined.
func TestAttackUnconfined(t *testing.T) {
	t.Parallel()
	r := newReach(t, Settings{Mode: confine.WhenAvailable})
	r.Confiner.Self = "/nowhere"
	p, command := plan(map[string]any{}), process.Command{Path: "true"}
	if err := r.Plan(t.Context(), p, &command); err != nil || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "not confined as a whole") {
		t.Errorf("%v, %v", p.Warnings, err)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	command := process.Command{Path: "true"}
	off := newReach(t, Settings{Mode: confine.Off})
	if err := errors.Join(off.Plan(t.Context(), plan(map[string]any{}), &command), off.Shell(t.Context(), tool.Env{}, &command)); err != nil || command.Path != "true" || command.Sys != nil {
		t.Errorf("%+v, %v", command, err)
	}
	missing := newReach(t, Settings{Mode: confine.Required})
	missing.Confiner.Self = "/nowhere"
	for name, apply := range map[string]func(context.Context) error{
		"plan":  func(ctx context.Context) error { return missing.Plan(ctx, plan(map[string]any{}), &command) },
		"shell": func(ctx context.Context) error { return missing.Shell(ctx, tool.Env{}, &command) },
	} {
		if f := tool.AsFault(apply(t.Context())); f == nil || f.Code != tool.CodeUnsupported || !strings.Contains(f.Message, "execution.confine") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestAttackProjectFromWorkspace: a thread with a workspace has a shell, and writes into the project, the git folder of the workspace and its .git. Only the workspace is changed.
func TestAttackProjectFromWorkspace(t *testing.T) {
	t.Parallel()
	r := newReach(t, Settings{Mode: confine.Required})
	all := filepath.Join(r.User, ".ai", "workspaces")
	w := &tool.Work{Root: filepath.Join(all, "w", "tree"), Tree: filepath.Join(all, "w", "tree"), Git: filepath.Join(all, "w", "git")}
	for _, dir := range []string{w.Tree, w.Git} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(w.Tree, ".git"), []byte("gitdir: ../git\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := process.Command{Path: "sh", Dir: w.Root, Env: process.ToolEnv(os.Environ(), "P="+r.Project), Args: []string{"-c", `
		echo x > a && echo workspace; echo x > "$P/a" && echo PROJECT; echo x > ../git/a && echo GIT; echo x > .git && echo POINTER; rm -f .git; test -e .git || echo REMOVED; true`}}
	err := r.Shell(t.Context(), tool.Env{Project: r.Project, Work: w}, &command)
	if f, ok := errors.AsType[*tool.Fault](err); ok && f.Code == tool.CodeUnsupported {
		confinetest.Skip(t, f.Message)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := process.Run(t.Context(), command)
	if err != nil || string(got.Stdout) != "workspace\n" {
		t.Errorf("%s%s, %v", got.Stdout, got.Stderr, err)
	}
}
