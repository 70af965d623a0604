package handler

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/builtin/file"
	"github.com/rye-mcp/rye-mcp/tools/builtin/shell"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// TestMain makes the test binary the program that threads are started from: one
// whose process is gone at once. The tests of cmd/rye-mcp cover what threads do,
// with the whole program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "thread" {
		os.Exit(3)
	}
	goleak.VerifyTestMain(m)
}

// oneProject is a server's only project.
type oneProject struct {
	only    *Project
	several bool // but calls are told to name it
}

func (p oneProject) Several() bool { return p.several }

func (oneProject) Holding(context.Context, []thread.ID, func(string) bool) (*Project, error) {
	return nil, nil //nolint:nilnil // threads lead nowhere
}

func (p oneProject) Project(context.Context, string) (*Project, error) { return p.only, nil }

// connect returns a client of a server with all tools over a project that has
// the given files.
func connect(t *testing.T, files map[string]string) *servertest.Client {
	t.Helper()
	return connectTo(t, newFolder(t, files))
}

// newFolder is a project of files, whose folder no link leads to.
func newFolder(t *testing.T, files map[string]string) *Project {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, files)
	return newProject(t, dir)
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func connectTo(t *testing.T, p *Project) *servertest.Client {
	t.Helper()
	s := server.New(server.Options{Version: "test", MapError: action.Fault, OutputSchemas: true})
	Register(s, oneProject{only: p}, Groups(), operation.All())
	return servertest.Start(t, s)
}

func newProject(t *testing.T, dir string) *Project {
	t.Helper()
	roots := resolve.Roots{Project: dir, User: t.TempDir(), System: system.FS()}
	trusttest.AcceptSettings(t, roots)
	resolver, loader := resolve.New(roots), config.New(roots)
	unchecked := &trust.Gate{
		Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Off}, nil },
		Own:      func() (*sign.PublicKey, error) { return nil, nil },
	}
	tools, err := executor.New(append(file.Tools(file.Deps{}), shell.New(nil))...)
	if err != nil {
		t.Fatal(err)
	}
	state, err := placetest.Make(dir, roots.User)
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), state.Dir, sqlite.Options{Mark: state.Seal.Mark})
	if err != nil {
		t.Fatal(err)
	}
	index, err := search.Open(context.WithoutCancel(t.Context()), "", resolver)
	if err != nil {
		t.Fatal(err)
	}
	controller := control.New(control.Deps{
		Project: dir, Store: store, Resolver: resolver, Config: loader, Trust: unchecked,
		Records: records.Local{Home: folder.Home{Dir: state.Dir, Seal: state.Seal}.Always()}, Key: func() (*sign.Key, error) { return nil, sign.ErrNoKey },
		Providers: provider.NewSource(func(string) string { return "" }), Now: time.Now,
		Life: &life.Local{Project: dir, Home: folder.Home{Dir: state.Dir}.Always(), Place: process.Here("here"), Args: func(thread.ID) []string { return []string{"none"} }},
		Log:  zerolog.Nop(), Launcher: &spawn.Launcher{
			Executable: os.Args[0], Project: dir, Home: folder.Home{Dir: state.Dir}.Always(), Environ: func([]string) ([]string, []string) { return nil, nil },
		},
	})
	t.Cleanup(func() {
		if err := index.Close(); err != nil {
			t.Error(err)
		}
		if err := controller.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Project{Path: dir, Control: controller, Notices: func() []string { return loader.Read().Notices() }, Actions: action.New(action.Deps{
		Resolver: resolver, Trust: unchecked, Search: index.Search, Executor: tools,
		Threads: operation.Actions{Threads: control.Threads{Controller: controller}, Table: operation.All()},
		Key:     func() (*sign.Key, error) { return nil, sign.ErrNoKey }, Now: time.Now, Compose: controller.Planner.Compose,
	})}
}
