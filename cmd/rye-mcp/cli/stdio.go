package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// serveStdio serves MCP on standard input and output until the input ends. The
// threads it started go on.
func serveStdio(ctx context.Context, sys System, opts options, serve serveOptions) error {
	groups, err := handler.ParseGroups(serve.tools)
	if err != nil {
		return &usageError{message: "--tools: " + err.Error(), try: "--tools core,threads"}
	}
	log, closeLog, err := serverLog(sys, serve.logFile)
	if err != nil {
		return err
	}
	defer closeLog()
	s := server.New(server.Options{Version: version(), MapError: action.Fault, Log: log})
	projects, err := newProjects(sys, opts.project, serve.allowed, log, s.Roots)
	if err != nil {
		return err
	}
	defer projects.close()
	handler.Register(s, projects, groups)
	projects.openFirst()

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

func serverLog(sys System, path string) (zerolog.Logger, func(), error) {
	if path == "" {
		return newLog(sys, sys.Stderr), func() {}, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return zerolog.Nop(), nil, &usageError{
			message: fmt.Sprintf("cannot write the log: %v", err), try: "--log-file with a path that can be written",
		}
	}
	return newLog(sys, f), func() { _ = f.Close() }, nil
}
