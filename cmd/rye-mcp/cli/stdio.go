package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/mcp/app"
	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/resource"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/threadlog"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// addFlags adds the flags that both ways to serve have. outside says what
// --allow-root lets in when it is not given.
func (o *serveOptions) addFlags(cmd *cobra.Command, outside string) {
	cmd.Flags().StringVar(&o.tools, "tools", "", "groups of tools to offer: core, threads, admin (default: all)")
	cmd.Flags().StringArrayVar(&o.allowed, "allow-root", nil, "refuse projects outside this `folder`; repeat for more (default: "+outside+")")
	cmd.Flags().BoolVar(&o.outputSchemas, "output-schemas", false, "tell clients the schemas of answers, too; the list of tools is four times as long then")
	cmd.Flags().StringVar(&o.logFile, "log-file", "", "append the server's log to this file instead of standard error; at 8 MiB it becomes FILE.1")
}

// mcpServer is the server with its tools, for any transport.
type mcpServer struct {
	*server.Server
	projects *projects
	log      zerolog.Logger
	closeLog func()
}

func newMCPServer(sys System, opts options, serve serveOptions, clients placed) (*mcpServer, error) {
	groups, err := handler.ParseGroups(serve.tools)
	if err != nil {
		return nil, &usageError{message: "--tools: " + err.Error(), try: "--tools core,threads,admin"}
	}
	log, closeLog, err := serverLog(sys, serve.logFile)
	if err != nil {
		return nil, err
	}
	s := server.New(server.Options{
		Version: version(), MapError: action.Fault, Log: log, Trace: uuid.NewString,
		Schemas: handler.Schemas(), OutputSchemas: serve.outputSchemas,
	})
	projects, err := newProjects(sys, opts.project, serve.allowed, log, s.Roots)
	if err != nil {
		closeLog()
		return nil, err
	}
	projects.clients = clients(s, here(sys))
	handler.Register(s, projects, groups, operation.All())
	s.OfferPrompts(handler.Prompts(projects))
	s.OfferResources(app.Resources{Resources: &resource.Resources{Projects: projects}})
	app.Offer(s, app.Options{Projects: projects, Version: version(), Now: sys.Now, Log: log})
	s.OfferTasks(handler.Tasks(projects))
	return &mcpServer{Server: s, projects: projects, log: log, closeLog: closeLog}, nil
}

func (m *mcpServer) close() {
	m.projects.close()
	m.closeLog()
}

// serveStdio serves MCP on standard input and output until the input ends. The
// threads it started go on.
func serveStdio(ctx context.Context, sys System, opts options, serve serveOptions) error {
	s, err := newMCPServer(sys, opts, serve, oneClient)
	if err != nil {
		return err
	}
	defer s.close()
	s.projects.openFirst()

	s.log.Info().Str("version", version()).Int("pid", os.Getpid()).Msg("serving MCP on stdio")
	serving, stop := untilSignalled(ctx)
	defer stop()
	in, leave := awaited(sys.Stdin)
	defer leave()
	err = s.ServeStdio(serving, in, sys.Stdout)
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
	f, err := threadlog.OpenShared(path)
	if err != nil {
		return zerolog.Nop(), nil, &usageError{
			message: fmt.Sprintf("cannot write the log: %v", err), try: "--log-file with a path that can be written",
		}
	}
	return newLog(sys, f), func() { _ = f.Close() }, nil
}
