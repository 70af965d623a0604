package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/tools/confine"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// projects opens each project a client names once and keeps it for the life of
// the server, or until its state is another.
type projects struct {
	sys     System
	chosen  string   // --project, as canonical names it; empty without
	allowed []string // folders that projects must lie in; none: anywhere
	log     zerolog.Logger

	roots   func(context.Context) ([]string, error) // asks the client
	clients clientele

	ctx        context.Context //nolint:containedctx // lives as long as the server; ends the sweeps with it
	stop       context.CancelFunc
	background sync.WaitGroup

	mu      sync.Mutex
	open    map[string]*served
	retired []*served        // the oldest first; calls may still be at work in them
	visited map[string]visit // by path, as clients write it
}

// served is an open project with what goes on in it beside calls.
type served struct {
	*project
	ctx        context.Context //nolint:containedctx // ends what goes on
	stop       context.CancelFunc
	background sync.WaitGroup
}

// visit is where a path led to.
type visit struct {
	project *project
	folder  os.FileInfo
}

// newProjects refuses folders that the command line names and that do not
// exist.
func newProjects(
	sys System, chosen string, allowed []string, log zerolog.Logger,
	roots func(context.Context) ([]string, error),
) (*projects, error) {
	ps := &projects{sys: sys, log: log, roots: roots, open: map[string]*served{}, visited: map[string]visit{}}
	for _, dir := range allowed {
		real, err := canonical(dir)
		if err != nil {
			return nil, &usageError{message: "--allow-root: " + err.Error(), try: "--allow-root with an existing folder"}
		}
		ps.allowed = append(ps.allowed, real)
	}
	if chosen != "" {
		real, err := canonical(chosen)
		if err != nil {
			return nil, err
		}
		if !ps.allows(real) {
			return nil, &usageError{message: fmt.Sprintf("--project %s is outside --allow-root", chosen), try: "--allow-root " + real}
		}
		ps.chosen = real
	}
	ps.ctx, ps.stop = context.WithCancel(context.Background())
	return ps, nil
}

// listFirst leaves the processors to the first answer of a server: its client
// asks for the tools at once and waits for them, and nobody waits for this.
const listFirst = 50 * time.Millisecond

// openFirst opens the project that can be known before a client comes, so that
// threads that died while no server ran are settled without anybody asking.
func (ps *projects) openFirst() {
	dir := ps.chosen
	if dir == "" {
		var err error
		if dir, err = ps.workingDir(); err != nil {
			return // the first call will name one
		}
	}
	ps.background.Go(func() {
		select {
		case <-time.After(listFirst):
		case <-ps.ctx.Done():
			return
		}
		if _, err := ps.get(dir); err != nil {
			ps.log.Warn().Err(err).Str("project", dir).Msg("open project")
		}
	})
}

// Project implements [handler.Projects].
func (ps *projects) Project(ctx context.Context, path string) (*handler.Project, error) {
	dir, err := ps.find(ctx, path)
	if err != nil {
		return nil, err
	}
	p, err := ps.get(dir)
	if err != nil {
		return nil, err
	}
	return ps.offered(p), nil
}

// offered is a project as the tools work on it.
func (ps *projects) offered(p *project) *handler.Project {
	open := &handler.Project{Path: p.path, Actions: p.actions, Control: p.control, Prompts: p.prompts, Tasks: p.tasks, Notices: p.notices}
	if ps.clients.identify != nil {
		open.Origin = ps.clients.origin
	}
	return open
}

// Holding implements [handler.Projects].
func (ps *projects) Holding(ctx context.Context, ids []thread.ID, visited func(path string) bool) (*handler.Project, error) {
	if len(ids) == 0 {
		return nil, nil //nolint:nilnil // no thread leads anywhere
	}
	open := slices.DeleteFunc(ps.opened(), func(p *project) bool { return !visited(p.path) })
	if len(open) == 1 && open[0].path == ps.usual() {
		return nil, nil //nolint:nilnil // there is no other
	}
	var some, all []*project // that have some of the threads, and all
	for _, p := range open {
		known, err := p.control.Threads.Store.Known(ctx, ids)
		if err != nil || len(known) == 0 {
			continue
		}
		some = append(some, p)
		if !slices.ContainsFunc(ids, func(id thread.ID) bool { return !known[id] }) {
			all = append(all, p)
		}
	}
	if len(all) > 0 {
		some = all
	}
	switch len(some) {
	case 0:
		return nil, nil //nolint:nilnil // they may be in one that is not open
	case 1:
		return ps.offered(some[0]), nil
	}
	return nil, severalHold(some, len(all) > 0)
}

// severalHold refuses a call whose threads are in several projects.
func severalHold(in []*project, each bool) error {
	paths := make([]string, len(in))
	for i, p := range in {
		paths[i] = p.path
	}
	slices.Sort(paths)
	fault := tool.Faultf(tool.CodeAmbiguous, "the threads are in several projects").
		WithHint("Make one call for each project, with project_path and its threads.")
	if each {
		fault = tool.Faultf(tool.CodeAmbiguous, "more than one project has threads of these ids").WithHint("Give project_path, one of projects.")
	}
	return fault.With("projects", paths)
}

// usual is the project of calls that name none, where that is not for the client to say;
// empty where it is.
func (ps *projects) usual() string {
	if ps.chosen != "" {
		return ps.chosen
	}
	if dir, err := ps.workingDir(); err == nil {
		if real, err := canonical(dir); err == nil {
			return real
		}
	}
	return ""
}

// opened are the projects that calls have named so far.
func (ps *projects) opened() (list []*project) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.open {
		list = append(list, p.project)
	}
	return list
}

// Several implements [handler.Projects]: one project is meant where one was chosen,
// or where the server was started in one, and there is no choice of others.
func (ps *projects) Several() bool {
	if len(ps.allowed) > 0 {
		return len(ps.allowed) > 1 || ps.allowed[0] != ps.chosen
	}
	_, err := ps.workingDir()
	return ps.chosen == "" && err != nil
}

// find names the project of a call: the argument, else --project, else the
// client's single root, else the working directory when it has a .ai folder.
func (ps *projects) find(ctx context.Context, path string) (string, error) {
	switch {
	case path != "" && !filepath.IsAbs(path):
		return "", tool.Faultf(tool.CodeNoProject, "project_path %q is not an absolute path", path)
	case path != "":
		return path, nil
	case ps.chosen != "":
		return ps.chosen, nil
	}
	roots, _ := ps.roots(ctx) // a client that cannot say has none
	if len(roots) == 1 {
		return roots[0], nil
	}
	dir, err := ps.workingDir()
	if err == nil {
		return dir, nil
	}
	return "", tool.Faultf(tool.CodeNoProject,
		"no project: the server was started without --project, the client has %d roots, and %v", len(roots), err).
		WithHint("Give project_path, the absolute path of the folder you work in.")
}

// workingDir is the working directory if it is a project already: a client may
// start its servers anywhere.
func (ps *projects) workingDir() (string, error) {
	dir, err := ps.sys.Getwd()
	if err != nil {
		return "", fmt.Errorf("the working directory is not known: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".ai")); err != nil {
		return "", fmt.Errorf("the working directory %s has no .ai folder", dir)
	}
	return dir, nil
}

// allows reports whether a project may be opened. The path is canonical.
func (ps *projects) allows(path string) bool {
	return len(ps.allowed) == 0 ||
		slices.ContainsFunc(ps.allowed, func(root string) bool { return pathname.Has(root, path) })
}

// maxVisited bounds how many paths are known to lead to open projects.
const maxVisited = 100

// get opens a project, or returns the one that is open. A path is resolved
// again only when it has come to name another folder, or the state there or its key
// was removed or replaced.
func (ps *projects) get(dir string) (*project, error) {
	folder, err := os.Stat(dir)
	if err != nil {
		return ps.openNow(dir) // which says what is wrong with it
	}
	ps.mu.Lock()
	known := ps.visited[dir]
	ps.mu.Unlock()
	if known.project != nil && os.SameFile(known.folder, folder) && known.project.state.isCurrent() {
		return known.project, nil
	}
	p, err := ps.openNow(dir)
	if err != nil {
		return nil, err
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ps.visited) >= maxVisited {
		clear(ps.visited)
	}
	ps.visited[dir] = visit{p, folder}
	return p, nil
}

// openNow finds out where a path leads. The project outlives the call that
// happened to need it first.
func (ps *projects) openNow(dir string) (*project, error) {
	real, err := canonical(dir)
	if err != nil {
		return nil, tool.Faultf(tool.CodeNoProject, "%w", err).
			WithHint("Give project_path, the absolute path of an existing folder.")
	}
	if !ps.allows(real) {
		return nil, tool.Faultf(tool.CodeNoProject, "project %s lies outside the folders this server may work in", real).
			With("allowed_roots", ps.allowed).WithHint("Give project_path, a folder in one of allowed_roots.")
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p, ok := ps.open[real]; ok {
		if p.state.isCurrent() {
			return p.project, nil
		}
		ps.retire(real, p)
	}
	p, err := openProject(ps.ctx, ps.sys, real, ps.log)
	if err != nil {
		return nil, err
	}
	ps.clients.tellAt(p.control.News)
	ps.open[real] = ps.serve(p)
	return p, nil
}

// serve does what a project needs beside calls.
func (ps *projects) serve(p *project) *served {
	s := &served{project: p}
	s.ctx, s.stop = context.WithCancel(ps.ctx)
	s.background.Go(func() {
		ps.sweep(s)
		s.background.Go(func() { ps.reconcile(s) })
		s.background.Go(func() { p.control.Tidy.Run(s.ctx) })
		p.control.Queue.Run(s.ctx)
	})
	s.background.Go(func() { ps.tellUnconfined(s) })
	s.background.Go(func() { p.mirroring.keepSending(s.ctx) })
	return s
}

// unconfinedAfter is when a server finds out whether commands are confined: that takes a
// process with a network of its own, and first answers come first. A command tells it anyway.
const unconfinedAfter = 5 * time.Second

// tellUnconfined says in the log when the commands of tools cannot be confined as the
// settings ask for.
func (ps *projects) tellUnconfined(s *served) {
	select {
	case <-s.ctx.Done():
		return
	case <-time.After(unconfinedAfter):
	}
	set, err := s.reach.Settings()
	if err != nil || set.Mode == confine.Off {
		return // settings that do not load are told elsewhere
	}
	if has := s.reach.Confiner.Available(s.ctx); !has.Whole() {
		ps.log.Warn().Str("project", s.path).Str("confine", string(set.Mode)).Msg("commands of tools are not confined as a whole here: " + has.String())
	}
}

// maxRetired bounds the projects that are kept for calls which began before their
// state was another.
const maxRetired = 4

// retire takes a project out of use. Its threads go on, and calls that are at work
// in it: nobody else knows those threads.
func (ps *projects) retire(path string, p *served) {
	ps.log.Warn().Str("project", path).Msg("the state of the project was removed or replaced, or its key; it is opened anew")
	p.stop()
	ps.background.Go(p.control.Changes.Close) // listeners turn to the project in its place
	delete(ps.open, path)
	maps.DeleteFunc(ps.visited, func(_ string, v visit) bool { return v.project == p.project })
	ps.retired = append(ps.retired, p)
	if len(ps.retired) > maxRetired {
		oldest := ps.retired[0]
		ps.retired = ps.retired[1:]
		ps.background.Go(func() { ps.closeOne(oldest) })
	}
}

// closeOne closes a project when nothing goes on in it any more but calls.
func (ps *projects) closeOne(p *served) {
	p.stop()
	p.background.Wait()
	if err := p.Close(); err != nil {
		ps.log.Warn().Err(err).Str("project", p.path).Msg("close project")
	}
}

// sweep settles what died while no server ran. It can take seconds when the
// children of a dead thread have to be stopped, so no call waits for it; each
// looks for itself at the threads it is about.
func (ps *projects) sweep(p *served) {
	report, err := p.control.Threads.Sweep(p.ctx)
	if p.ctx.Err() != nil {
		return // the next server goes on with it
	}
	if err != nil {
		ps.log.Error().Err(err).Str("project", p.path).Msg("sweep for dead threads")
		return
	}
	if err := p.sendLeftNotices(p.ctx, ps.sys); err != nil {
		ps.log.Warn().Err(err).Str("project", p.path).Msg("notifications that are due")
	}
	if err := p.sendLeftTraces(p.ctx, ps.sys, ps.log); err != nil {
		ps.log.Warn().Err(err).Str("project", p.path).Msg("traces that are due")
	}
	if err := p.mirroring.sendLeftCopies(p.ctx); err != nil {
		ps.log.Warn().Err(err).Str("project", p.path).Msg("copies on the mirror that are due")
	}
	for _, line := range p.strangers() {
		ps.log.Warn().Str("project", p.path).Msg(line)
	}
	if removed, err := p.control.Health.SweepFolders(p.ctx); err != nil && p.ctx.Err() == nil {
		ps.log.Error().Err(err).Str("project", p.path).Msg("remove what starts have left that were cut short")
	} else if removed > 0 {
		ps.log.Info().Str("project", p.path).Int("removed", removed).Msg("removed what starts have left that were cut short")
	}
	ps.log.Info().Str("project", p.path).Int("looked", report.Looked).Int("settled", report.Settled()).
		Msg("opened project")
}

// reconcile says how many disagreements there are between registry, ledger and
// folders; "rye-mcp threads reconcile" tells which.
func (ps *projects) reconcile(p *served) {
	found, err := p.control.Health.Disagreements(p.ctx)
	switch {
	case p.ctx.Err() != nil:
	case err != nil:
		ps.log.Error().Err(err).Str("project", p.path).Msg("compare registry, ledger and folders of threads")
	case found > 0:
		ps.log.Warn().Str("project", p.path).Int("findings", found).
			Msg("registry, ledger and folders of threads disagree; rye-mcp threads reconcile says where")
	}
}

// close ends the sweeps and closes the projects. No call is in flight any more.
func (ps *projects) close() {
	ps.stop()
	ps.background.Wait()
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.open {
		ps.closeOne(p)
	}
	for _, p := range ps.retired {
		ps.closeOne(p)
	}
}
