package control

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// testTime is the clock of the controllers of these tests: everything happens
// in one second.
var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

const projectSettings = `provider: {default: scripted}
threads: {soft_stop_seconds: 1, term_seconds: 0.2, orphans: %s}
`

// directive has a name, limits and what it may execute beside files.
const directive = "# Work\n\n```xml\n" + `<directive name="%s" version="1.0.0">
  <metadata>
    <description>Do some work</description>
    <model tier="fast" />
    %s
    <permissions><execute><tool>rye.file-system.*</tool>%s</execute></permissions>
  </metadata>
</directive>
` + "```\n\nWork.\n"

// startsAny lets a directive start every other.
const startsAny = "<directive>*</directive>"

// giveUp ends a test that waits for something which never comes.
const giveUp = time.Minute

// scene is a project whose threads are puppets.
type scene struct {
	testing.TB
	ctx     context.Context //nolint:containedctx // lives as long as the test
	project string
	env     []string // of thread processes
	c       *Controller

	mu      sync.Mutex
	come    chan struct{} // closed, and replaced, when a puppet has come
	puppets map[thread.ID]*player
}

// player is a puppet as the test sees it.
type player struct {
	pid   int             // may be another's once it is gone
	gone  <-chan struct{} // is closed then
	held  *os.Process     // it alone, also then
	conn  net.Conn
	lines *bufio.Scanner
}

func newScene(t testing.TB) *scene {
	t.Helper()
	dir, err := os.MkdirTemp("", "control") //nolint:usetesting // short: a socket's path has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return newSceneIn(t, dir)
}

// newSceneIn is [newScene] in a folder with a short name.
func newSceneIn(t testing.TB, dir string) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), giveUp)
	t.Cleanup(cancel)
	s := &scene{
		TB: t, ctx: ctx, project: filepath.Join(dir, "project"), come: make(chan struct{}), puppets: map[thread.ID]*player{},
		// The race detector would let each process sleep for a second at its end.
		env: []string{socketVar + "=" + filepath.Join(dir, "s"), "GORACE=atexit_sleep_ms=0"},
	}
	s.write("config/agent/agent.yaml", fmt.Sprintf(projectSettings, "cancel"))
	s.write("directives/work.md", fmt.Sprintf(directive, "work", `<limits spend="0.01" spawns="50" />`, startsAny))
	s.write("directives/idle.md", fmt.Sprintf(directive, "idle", "", startsAny))
	s.listen(filepath.Join(dir, "s"))
	s.c = s.controller()
	return s
}

func (s *scene) write(file, text string) {
	s.Helper()
	path := filepath.Join(s.project, ".ai", filepath.FromSlash(file))
	s.noError(os.MkdirAll(filepath.Dir(path), 0o700))
	s.noError(os.WriteFile(path, []byte(text), 0o600))
	if strings.HasPrefix(file, "config/") {
		trusttest.AcceptSettings(s, rootsOf(s.project))
	}
}

func rootsOf(project string) resolve.Roots {
	return resolve.Roots{Project: project, User: filepath.Join(filepath.Dir(project), "user"), System: system.FS()}
}

func (s *scene) noError(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// controller is one more server on the project, with more variables in its environment.
func (s *scene) controller(more ...string) *Controller {
	s.Helper()
	c, err := openController(s.ctx, s.project, slices.Concat(s.env, more))
	s.noError(err)
	s.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.Errorf("close: %v", err)
		}
	})
	return c
}

func openController(ctx context.Context, project string, env []string) (*Controller, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	state, err := placetest.Make(project, rootsOf(project).User)
	if err != nil {
		return nil, err
	}
	here := process.Here("host")
	db, err := sqlite.Open(ctx, state.Dir, sqlite.Options{
		Mark: state.Seal.Mark, Process: thread.Process(here.Self()), Patience: sqlite.Patience{Stopped: time.Millisecond},
		Holder: func(recorded thread.Process, files ...string) thread.Holder {
			id, stopped := here.Holder(process.ID(recorded), files...)
			return thread.Holder{Process: thread.Process(id), Near: here.Reach(id) == process.Near, Stopped: stopped}
		},
	})
	if err != nil {
		return nil, err
	}
	roots := rootsOf(project)
	loader := config.New(roots)
	home := folder.Home{Dir: state.Dir, Seal: state.Seal}.Always()
	return New(Deps{
		Project: project, Store: db, Records: records.Local{Home: home}, Snapshots: keeperOf(project, home()),
		Key: func() (*sign.Key, error) { return sign.Load(roots.User) }, Resolver: resolve.New(roots), Config: loader,
		Trust:     &trust.Gate{Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Off}, nil }},
		Providers: provider.NewSource(variablesOf(env)),
		Launcher: &spawn.Launcher{
			Executable: executable, Project: project, Environ: func([]string) ([]string, []string) { return env, nil }, Home: home, Place: here,
		},
		Life: &life.Local{
			Project: project, Home: home, Place: here, Args: func(id thread.ID) []string { return spawn.Args(project, id) },
		},
		Now: func() time.Time { return testTime }, Log: zerolog.Nop(),
	}), nil
}

// variablesOf looks a variable up among those of a process.
func variablesOf(env []string) func(name string) string {
	return func(name string) string {
		for _, entry := range env {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// homeOf is where the folders of threads are.
func homeOf(c *Controller) folder.Home { return c.Threads.Records.(records.Local).Home() }

// folder is that of a thread.
func (s *scene) folder(id thread.ID) folder.Folder { return homeOf(s.c).Of(id) }

// listen lets puppets come, and ends them with the test.
func (s *scene) listen(path string) {
	s.Helper()
	listener, err := net.Listen("unix", path)
	s.noError(err)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.welcome(conn)
		}
	})
	s.Cleanup(func() {
		_ = listener.Close()
		accepting.Wait()
		for _, p := range s.puppets {
			_ = p.conn.Close()
			_ = p.held.Kill() // most have ended
			<-p.gone
		}
	})
}

func (s *scene) welcome(conn net.Conn) {
	p := &player{conn: conn, lines: bufio.NewScanner(conn)}
	var id thread.ID
	if !p.lines.Scan() {
		_ = conn.Close()
		return
	}
	if _, err := fmt.Sscan(p.lines.Text(), &id, &p.pid); err != nil {
		s.Errorf("a puppet said %q: %v", p.lines.Text(), err)
	}
	p.gone = process.Watch(context.Background(), p.pid)
	p.held, _ = os.FindProcess(p.pid) // never fails where there are processes
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puppets[id] = p
	close(s.come)
	s.come = make(chan struct{})
}

// puppet waits for the process of a thread.
func (s *scene) puppet(id thread.ID) *player {
	s.Helper()
	for {
		s.mu.Lock()
		p, come := s.puppets[id], s.come
		s.mu.Unlock()
		if p != nil {
			return p
		}
		select {
		case <-come:
		case <-s.ctx.Done():
			s.Fatalf("the process of %s did not come", id)
		}
	}
}

// order tells the process of a thread to do something and waits until it has,
// or has ended.
func (s *scene) order(id thread.ID, orders ...string) {
	s.Helper()
	p := s.puppet(id)
	for _, order := range orders {
		if _, err := fmt.Fprintln(p.conn, order); err != nil {
			s.Fatalf("%s: %v", order, err)
		}
		p.lines.Scan()
	}
}

// start starts a thread and lets it claim its row.
func (s *scene) start(directive string, parent thread.ID) thread.ID {
	s.Helper()
	req := action.StartRequest{Directive: directive, Parent: parent}
	if parent == "" {
		req.Limits = item.LimitSet{"spend": 1.0}
	}
	started, err := s.c.Start(s.ctx, action.Caller{Person: true}, req)
	s.noError(err)
	s.order(started.ThreadID, "claim")
	return started.ThreadID
}

func (s *scene) wait(c *Controller, mode string, ids ...thread.ID) view.WaitResult {
	s.Helper()
	r, err := c.Wait(s.ctx, WaitRequest{ThreadIDs: ids, Mode: mode, Timeout: giveUp})
	s.noError(err)
	return r
}

func (s *scene) row(id thread.ID) thread.Record {
	s.Helper()
	rec, err := s.c.Threads.Store.Get(s.ctx, id)
	s.noError(err)
	return rec
}

// wantState fails the test unless the row, as it is stored, has that state.
func (s *scene) wantState(state thread.State, ids ...thread.ID) {
	s.Helper()
	for _, id := range ids {
		if rec := s.row(id); rec.Status != state {
			s.Errorf("%s is %s (%+v), want %s", id, rec.Status, rec.Outcome, state)
		}
	}
}

// wantTree compares what is spent, held and active below a thread.
func (s *scene) wantTree(id thread.ID, want store.TreeSpend) {
	s.Helper()
	_, got, err := s.c.Threads.Store.Tree(s.ctx, id)
	s.noError(err)
	if got != want {
		s.Errorf("tree of %s: %+v, want %+v", id, got, want)
	}
}
