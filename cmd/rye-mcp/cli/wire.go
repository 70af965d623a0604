package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/mcp/prompt"
	"github.com/rye-mcp/rye-mcp/mcp/task"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/relocate"
	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/orchestrator/worker"
	"github.com/rye-mcp/rye-mcp/runtime/digest"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/late"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/workspace"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	itemwatch "github.com/rye-mcp/rye-mcp/spaces/watch"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/executor/mcpclient"
	"github.com/rye-mcp/rye-mcp/tools/executor/reach"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// project is everything there is about one project, put together.
type project struct {
	path     string
	resolver *resolve.Resolver
	// worksBy are the items that the thread which this process runs works by; elsewhere none
	// are fixed.
	worksBy   threadItems
	config    *config.Loader
	trust     *trust.Gate
	providers *provider.Source
	// decided are the settings of the thread that this process runs; nil elsewhere.
	decided threadSettings
	store   *late.Store
	now     func() time.Time               // of this machine, or of all that share the store
	server  *connections                   // to where the threads are kept, unless that is this machine
	rows    atomic.Pointer[postgres.Store] // the store there; nil: there is none yet, or it is on this machine
	kept    records.Records
	flows   atomic.Pointer[relocate.Rows] // the store itself; nil: there is none yet
	state   *projectState
	// remembered is what a registry that was taken over said of its threads.
	remembered map[thread.ID]store.Remembered
	executor   *executor.Executor
	reach      *reach.Reach
	mcp        mcpclient.Primitive
	memory     *memory
	control    *control.Controller
	actions    *action.Actions
	env        map[string]string
	place      process.Place
	life       life.Life
	fleet      threads.Fleet // nil: the threads are kept on this machine
	guest      *worker.Guest // where this process is no worker
	askAgain   func()        // forgets what was answered about the leases of workers
	workspaces *workspace.Local
	// mirroring follows the changes of threads for the user's mirror.
	mirroring *mirroring
	// told are warnings that the person has been told of in other words.
	told []string

	index   lazyIndex
	items   *itemwatch.Shared
	prompts *prompt.Feed
	tasks   *task.Threads
}

// openProject puts a project together. Nothing is written: the state of threads is
// made with the first one.
func openProject(ctx context.Context, sys System, path string, log zerolog.Logger) (*project, error) {
	return assemble(ctx, sys, path, log, mendedStore)
}

// assemble is openProject with the choice of how the store is opened.
func assemble(ctx context.Context, sys System, path string, log zerolog.Logger, open storeOpener) (*project, error) {
	state, err := newState(ctx, sys, path)
	if err != nil {
		return nil, err
	}
	return assembleAround(ctx, sys, state, log, open, threadItems{})
}

// newState is where the threads of a project are, not yet found.
func newState(ctx context.Context, sys System, project string) (*projectState, error) {
	project, err := canonical(project)
	if err != nil {
		return nil, err
	}
	user, err := userSpace(sys)
	if err != nil {
		return nil, err
	}
	s := &projectState{finder: newFinder(sys, user), project: project}
	if s.site, err = siteOf(ctx, sys, spacesOf(project, user)); err != nil {
		return nil, err
	}
	return s, nil
}

// assembleAround is assemble for who has looked for the threads before, and may run one
// that works by certain items.
func assembleAround(ctx context.Context, sys System, state *projectState, log zerolog.Logger, open storeOpener, by threadItems) (*project, error) {
	path, user := state.project, state.finder.User
	server := state.server
	if server == nil {
		server = sys.connections(state.site)
	}
	if warning := state.fallBack(ctx, server); warning != "" {
		warn(sys, log.Warn(), warning)
	}
	if state.site.shared() {
		sys.Now = server.time
	}
	roots := spacesOf(path, user)
	p := &project{path: path, env: placeholderEnv(roots), state: state, server: server, worksBy: by, now: sys.Now}
	p.kept = p.newRecords(sys.Crashpoints)
	left := &digest.Source{Records: p.records()}
	p.resolver = resolve.New(roots).WithLeft(left)
	p.config = config.New(roots)
	p.trust = newGate(sys, roots)
	p.providers = providerSource(sys, p.path)
	p.memory = newMemory(sys, p, log)
	var err error
	if err = p.bound(sys, roots); err != nil {
		return nil, err
	}
	if p.executor, err = newExecutor(sys, roots, by.from(resolve.New(roots)), p.builtins(sys, user), p.primitives(), p.reach.Question, by.over(p.trust).With(p.integrity), p.config.Read, p.memorySettings); err != nil {
		return nil, err
	}
	host, err := sys.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the name of this host: %w", err)
	}
	p.place = process.Here(host)
	p.life = newLife(p)
	joinFleet(p, sys, log)
	p.workspaces = newWorkspaces(sys, p)
	p.mirroring = &mirroring{project: p, sys: sys, log: log}
	p.store = lateStore(ctx, sys, p, log, open)
	left.Store = p.store
	if err := p.openStore(ctx); err != nil {
		return nil, err
	}
	if err := p.connect(ctx, sys, log); err != nil {
		return nil, errors.Join(err, p.store.Close())
	}
	return p, nil
}

// openStore opens the store where there is one. That of a server can come back, and much needs
// none; a thread's process has enough to do until it is connected.
func (p *project) openStore(ctx context.Context) error {
	shared := p.state.site.shared()
	if shared && p.server.alone {
		return nil
	}
	_, err := p.store.Now(ctx)
	if shared {
		return nil
	}
	return err
}

// providerSource is what providers are chosen by beside the settings. Commands that give
// keys may need any of the person's variables, such as the address of their keychain, and are none of the project's.
func providerSource(sys System, project string) *provider.Source {
	return provider.NewSource(sys.Getenv).Clock(sys.Now).Commands(func() []string {
		return process.Outside(slices.Concat(sys.Outer, sys.Environ), project)
	})
}

// newLife are the lives of the threads of a project on this machine.
func newLife(p *project) *life.Local {
	return &life.Local{
		Project: p.path, Home: p.state.Home, Place: p.place,
		Args: func(id thread.ID) []string { return spawn.Args(p.path, id) },
	}
}

// placeholderEnv are the values of the {env:…} placeholders.
func placeholderEnv(roots resolve.Roots) map[string]string {
	return map[string]string{
		"USER_SPACE": roots.User, "AI_DIR": filepath.Join(roots.Project, ".ai"), "PROJECT_PATH": roots.Project,
	}
}

// newExecutor runs the tools that are functions of this program, and those of items
// that the gate lets through. Items are where those of roots are found. Settings are those
// that count in the project; nil: there are none. Tools of memory are offered where memory is on.
func newExecutor(
	sys System, roots resolve.Roots, items *resolve.Resolver, builtins []tool.Tool, primitives map[string]chain.Primitive,
	confine func(context.Context, tool.Env, *process.Command) error, gate *trust.Gate, settings func() *config.Snapshot,
	memory func() (config.Memory, error),
) (*executor.Executor, error) {
	builtin, err := executor.New(builtins...)
	if err != nil {
		return nil, err
	}
	library := ""
	if cache, err := search.CacheDir(sys.Getenv); err == nil { // without one, tools that need it say so
		library = filepath.Join(cache, "system")
	}
	chains := &chain.Builder{Resolver: items, Trust: gate, World: chain.World{
		Spaces: roots, Environ: slices.Concat(sys.Outer, sys.Environ), Library: library, Confine: confine,
		Accepted: func() bool { return trust.ProjectOf(roots).Programs() },
		Settings: func(rel string) ([]config.Layer, error) { return settings().Layers(rel) },
	}}
	return builtin.WithItems(chains, primitives).WithIdle(idleWithout(memory)), nil
}

// connect makes the parts that work with the others: controller, index and
// primary actions.
func (p *project) connect(ctx context.Context, sys System, log zerolog.Logger) error {
	executable, err := sys.Executable()
	if err != nil {
		return fmt.Errorf("find this program's own file: %w", err)
	}
	snapshots := newSnapshots(sys, p)
	if p.worksBy.Pins != nil {
		snapshots.Works(p.worksBy.Own)
	}
	p.control = control.New(control.Deps{
		Project: p.path, Store: p.store, Resolver: p.resolver, Config: p.config, Providers: p.providers,
		Trust: p.trust, Records: p.records(), Workspaces: p.workspaces, Snapshots: snapshots, Parent: callingThread(sys, p.path), Env: p.env,
		Palette: func(w opening.Wanted) (palette.Palette, error) {
			return opening.Toolbox{Resolver: p.worksBy.from(p.resolver), Actions: p.actions, Executor: p.executor}.Palette(w)
		},
		Daily: func(ctx context.Context) (*view.DailySpend, error) {
			return dailySpend(ctx, p.config.Read(), p.book(sys))
		},
		Forget: p.index.forget, Compact: []func(context.Context) (store.Vacuumed, error){p.index.compact, p.compactMemory}, Key: p.itemKey, Life: p.life, Fleet: p.fleet, Machine: machineOf(p), Now: sys.Now, Log: log, Crashpoints: sys.Crashpoints,
		Launcher: &spawn.Launcher{
			Executable: executable, Project: p.path, Home: p.state.Home, Place: p.place,
			Environ: func(keys []string) (env, secrets []string) { return process.ThreadEnv(sys.Environ, keys...) },
			Outer:   sync.OnceValue(func() []string { return outerOf(sys) }),
			Worker:  sys.workerName(),
			Store:   func() *spawn.Store { return p.state.site.handOver() },
		},
	})
	p.control.Health.Places = []health.Place{{Name: "search_index", Bytes: p.indexBytes(sys)}}
	p.control.Board.AppliedAt = p.workspaces.AppliedAt
	p.connectMemory()
	p.mirroring.connectMirror()
	p.control.Tidy.Jobs = append(append(p.control.Tidy.Jobs, tidy.Job{Name: "caches", Run: p.pruneCaches(sys), Here: true}), tidyRecords(p.kept, p.control.Threads.Finisher)...)
	p.index.open = func() (*search.Index, error) { return openIndex(ctx, sys, p.resolver) }
	p.index.exists = func() bool {
		where, err := search.DefaultPath(p.resolver.Roots().Project, p.resolver.Roots().User, sys.Getenv)
		return err == nil && search.Exists(where)
	}
	p.actions = action.New(action.Deps{
		Resolver: p.resolver, Executes: p.worksBy.from(p.resolver), Trust: p.worksBy.over(p.trust).With(p.integrity), Executor: p.executor, Now: sys.Now,
		Threads: operation.Actions{Threads: control.Threads{Controller: p.control}, Table: operation.All()},
		Compose: p.control.Planner.Compose,
		Search:  p.index.search,
		Key:     p.itemKey,
	})
	p.items = itemwatch.NewShared(p.resolver.Roots())
	p.prompts = newPrompts(p)
	p.tasks = &task.Threads{Standing: p.control.View.Standing, Code: p.state.code, Now: sys.Now}
	return nil
}

// integrity is how strictly signatures are taken: at the moment, or by the thread that
// this process runs.
func (p *project) integrity() (trust.Settings, error) {
	if p.decided != nil {
		return p.decided.Integrity()
	}
	return p.config.Read().Integrity()
}

// itemKey reads the user's signing key when it is needed: it may be made, or be
// replaced, while a server runs.
func (p *project) itemKey() (*sign.Key, error) { return sign.Load(p.resolver.Roots().User) }

// callingThread is the thread of a project that this process runs, or whose tool
// has started it; it may decide about nothing but what it has started. The
// processes above count for more than the environment, which a command can change.
func callingThread(sys System, project string) thread.ID {
	for args := range process.Ancestry() {
		if id := spawn.Of(project, args); id != "" {
			return id
		}
	}
	return thread.ID(sys.Getenv(process.ParentVariable))
}

// belowThread reports whether a thread of any project runs this process, or one of
// its tools has started it. There is no person whose decision it could carry.
func belowThread(sys System) bool {
	for args := range process.Ancestry() {
		if spawn.IsThread(args) {
			return true
		}
	}
	return sys.Getenv(process.ParentVariable) != ""
}

// Close releases what the project holds; its threads go on.
func (p *project) Close() error {
	p.items.Close()
	closeRecords(p.kept)
	err := errors.Join(p.executor.Close(), p.index.close(), p.memory.close(), p.control.Close())
	if p.guest != nil {
		p.guest.Close()
	}
	return errors.Join(err, p.server.close())
}

// openIndex opens the search index of the spaces of a resolver.
func openIndex(ctx context.Context, sys System, r *resolve.Resolver) (*search.Index, error) {
	where, err := search.DefaultPath(r.Roots().Project, r.Roots().User, sys.Getenv)
	if err != nil {
		where = "" // it is kept in memory
	}
	return search.Open(context.WithoutCancel(ctx), where, r)
}

// lazyIndex opens the search index when it is first used: it costs a database,
// and few processes ever search.
type lazyIndex struct {
	open   func() (*search.Index, error)
	exists func() bool // whether there is a file to be opened

	mu     sync.Mutex
	opened *search.Index
}

func (l *lazyIndex) get() (*search.Index, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened != nil {
		return l.opened, nil
	}
	index, err := l.open()
	if err != nil {
		return nil, err
	}
	l.opened = index
	return index, nil
}

func (l *lazyIndex) search(ctx context.Context, q search.Query) (search.Page, error) {
	index, err := l.get()
	if err != nil {
		return search.Page{}, err
	}
	return index.Search(ctx, q)
}

// forget takes knowledge entries out of the index, if there is one.
func (l *lazyIndex) forget(ctx context.Context, ids []string) error {
	index, err := l.made()
	if err != nil || index == nil {
		return err
	}
	return index.Forget(ctx, ids)
}

// compact makes the index as small as it can be, if there is one.
func (l *lazyIndex) compact(ctx context.Context) (v store.Vacuumed, err error) {
	v.Name = "search index"
	index, err := l.made()
	if err != nil || index == nil {
		return v, err
	}
	c, err := index.Compact(ctx)
	v.Before, v.After, v.Kept = c.Before, c.After, c.Kept
	return v, err
}

// made is the index where there is one; else nil.
func (l *lazyIndex) made() (*search.Index, error) {
	l.mu.Lock()
	opened := l.opened
	l.mu.Unlock()
	if opened != nil || !l.exists() {
		return opened, nil
	}
	return l.get()
}

func (l *lazyIndex) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		return nil
	}
	return l.opened.Close()
}

// loadKey reads the signing key; there need not be one.
func loadKey(user string) (*sign.Key, error) {
	if user == "" {
		return nil, nil
	}
	key, err := sign.Load(user)
	if errors.Is(err, sign.ErrNoKey) {
		return nil, nil
	}
	return key, err
}

// devMode is the variable that makes "warn" of the integrity mode "strict" when
// it is 1. Threads inherit it.
const devMode = "RYE_DEV_MODE"

// newGate decides what may be used by the user's keys, and by the settings that it
// is given with trust.Gate.With or Once.
func newGate(sys System, roots resolve.Roots) *trust.Gate {
	return &trust.Gate{
		Roots: roots, Shipped: system.Has,
		Own:         func() (*sign.PublicKey, error) { return publicKey(loadKey(roots.User)) },
		State:       func() ([]*sign.PublicKey, error) { return stateKeys(sys, roots) },
		Development: sys.Getenv(devMode) == "1",
	}
}

// userSpace is the folder that holds the user's .ai: $USER_SPACE, or the home
// directory.
func userSpace(sys System) (string, error) {
	if dir := sys.Getenv("USER_SPACE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := sys.HomeDir()
	if err != nil {
		return "", fmt.Errorf("find the home directory (or set USER_SPACE): %w", err)
	}
	return dir, nil
}

// canonical is the one name a project is known by: absolute, without symbolic
// links.
func canonical(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &usageError{message: fmt.Sprintf("project %s does not exist", path), try: "name an existing folder with --project"}
	}
	if err != nil {
		return "", fmt.Errorf("project %s: %w", path, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("project %s: %w", path, err)
	}
	if !info.IsDir() {
		return "", &usageError{message: fmt.Sprintf("project %s is not a folder", path), try: "name a folder with --project"}
	}
	return real, nil
}
