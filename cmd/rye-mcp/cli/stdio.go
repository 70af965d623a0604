package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// serveStdio serves MCP on standard input and output until the input ends. The
// threads it started go on.
func serveStdio(ctx context.Context, sys System, opts options) error {
	log, closeLog, err := serverLog(sys, opts)
	if err != nil {
		return err
	}
	defer closeLog()
	s := server.New(server.Options{Version: version(), MapError: action.Fault, Log: log})
	projects := &projects{sys: sys, opts: opts, log: log, roots: s.Roots, open: map[string]*project{}}
	defer projects.close()
	handler.Register(s, projects)

	log.Info().Str("version", version()).Int("pid", os.Getpid()).Msg("serving MCP on stdio")
	serving, stop := untilSignalled(ctx)
	defer stop()
	err = s.ServeStdio(serving, sys.Stdin, sys.Stdout)
	if ctx.Err() != nil {
		return nil // a signal is how editors end a server
	}
	return err
}

// untilSignalled ends with ctx, but as a shutdown: a signal to the server must
// not look like the cancel of the calls in flight, which would end the threads
// they wait for.
func untilSignalled(ctx context.Context) (context.Context, func()) {
	serving, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() { cancel(thread.ErrShutdown) })
	return serving, func() {
		unhook()
		cancel(nil)
	}
}

func serverLog(sys System, opts options) (zerolog.Logger, func(), error) {
	if opts.logFile == "" {
		return newLog(sys, sys.Stderr), func() {}, nil
	}
	f, err := os.OpenFile(opts.logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return zerolog.Nop(), nil, &usageError{
			message: fmt.Sprintf("cannot write the log: %v", err), try: "--log-file with a path that can be written",
		}
	}
	return newLog(sys, f), func() { _ = f.Close() }, nil
}

// projects opens each project a client names once and keeps it for the life of
// the server.
type projects struct {
	sys   System
	opts  options
	log   zerolog.Logger
	roots func(context.Context) ([]string, error)

	sweeps sync.WaitGroup

	mu   sync.Mutex
	open map[string]*project
}

// Project implements [handler.Projects].
func (ps *projects) Project(ctx context.Context, path string) (*handler.Project, error) {
	dir, err := ps.find(ctx, path)
	if err != nil {
		return nil, err
	}
	p, err := ps.get(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &handler.Project{Path: p.path, Actions: p.actions, Control: p.control}, nil
}

// find names the project of a call: the argument, else --project, else the
// client's single root, else the working directory when it has a .ai folder.
func (ps *projects) find(ctx context.Context, path string) (string, error) {
	if path != "" {
		if !filepath.IsAbs(path) {
			return "", tool.Faultf(tool.CodeNoProject, "project_path %q is not an absolute path", path)
		}
		return path, nil
	}
	if ps.opts.project != "" {
		return ps.opts.project, nil
	}
	if roots, err := ps.roots(ctx); err == nil && len(roots) == 1 {
		return roots[0], nil
	}
	dir, err := ps.sys.Getwd()
	if err == nil {
		if _, err = os.Stat(filepath.Join(dir, ".ai")); err == nil {
			return dir, nil
		}
	}
	return "", tool.Faultf(tool.CodeNoProject, "no project: the server was started without --project, and %s has no .ai folder", dir).
		WithHint("give project_path, the absolute path of the folder you work in")
}

func (ps *projects) get(ctx context.Context, dir string) (*project, error) {
	real, err := canonical(dir)
	if err != nil {
		return nil, tool.Faultf(tool.CodeNoProject, "%w", err).WithHint("give project_path, the absolute path of an existing folder")
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p, ok := ps.open[real]; ok {
		return p, nil
	}
	// The project outlives the call that happened to need it first.
	ctx = context.WithoutCancel(ctx)
	p, err := openProject(ctx, ps.sys, real, ps.log)
	if err != nil {
		return nil, err
	}
	ps.open[real] = p
	ps.sweeps.Go(func() { ps.sweep(ctx, p) })
	return p, nil
}

// sweep settles what died while no server ran. It can take seconds when the
// children of a dead thread have to be stopped, so no call waits for it; each
// looks for itself at the threads it is about.
func (ps *projects) sweep(ctx context.Context, p *project) {
	report, err := p.control.Sweep(ctx)
	if err != nil {
		ps.log.Error().Err(err).Str("project", p.path).Msg("sweep for dead threads")
		return
	}
	ps.log.Info().Str("project", p.path).Int("looked", report.Looked).Int("settled", len(report.Settled)).
		Msg("opened project")
}

func (ps *projects) close() {
	ps.sweeps.Wait()
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.open {
		if err := p.Close(); err != nil {
			ps.log.Warn().Err(err).Str("project", p.path).Msg("close project")
		}
	}
}
