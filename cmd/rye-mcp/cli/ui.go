package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	webpage "github.com/rye-mcp/rye-mcp/mcp/page"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/replay"
	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// pageMode is the flag --page of serve.
type pageMode string

const (
	pageOn       pageMode = "on"
	pageReadOnly pageMode = "read-only"
	pageOff      pageMode = "off"
)

func pageModes() []string { return []string{string(pageOn), string(pageReadOnly), string(pageOff)} }

func (m *pageMode) String() string { return string(*m) }

// Type names the values in the help.
func (m *pageMode) Type() string { return "mode" }

// Set takes a value of the flag.
func (m *pageMode) Set(s string) error {
	if !slices.Contains(pageModes(), s) {
		return fmt.Errorf("want %s", strings.Join(pageModes(), ", "))
	}
	*m = pageMode(s)
	return nil
}

// uiFlags are the flags of ui.
type uiFlags struct {
	port     int
	readOnly bool
	noOpen   bool
}

func newUICommand(sys System, opts *options) *cobra.Command {
	var (
		serve serveOptions
		ui    uiFlags
	)
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Look at threads in the browser, and answer them",
		Long: `Serve a page on this machine until it is interrupted, and open the browser on
it: what asks first, all threads as a tree with their budgets, what each does and
did. There you answer, steer, stop, resume and start threads.

The address it prints has a token: whoever has it acts as you, with --read-only
looks and no more. The token ends with this command; threads go on. MCP clients
are served by "rye-mcp serve --http", which has the page too.`,
		Example: `  rye-mcp ui
  rye-mcp ui --read-only --no-open --port 8766`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serveUI(cmd.Context(), sys, *opts, serve, ui)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&ui.port, "port", 0, "port to listen on; 0 for any that is free")
	flags.BoolVar(&ui.readOnly, "read-only", false, "let the page look, and change nothing")
	flags.BoolVar(&ui.noOpen, "no-open", false, "print the address and open no browser")
	flags.StringArrayVar(&serve.allowed, "allow-root", nil, "show the projects in this `folder`; repeat for more (default: the project chosen at start)")
	flags.StringVar(&serve.logFile, "log-file", "", "append what the page did to this file (default: standard error, or the cache folder when that is a terminal)")
	return cmd
}

// serveUI serves the page alone until ctx ends, on this machine.
func serveUI(ctx context.Context, sys System, opts options, serve serveOptions, ui uiFlags) error {
	if belowThread(sys) {
		return tool.Faultf(tool.CodeUnsupported, "the page acts for a person, and a thread is none").WithTry("rye-mcp ui in a terminal of your own")
	}
	if ui.port < 0 || ui.port > 65535 {
		return &usageError{message: fmt.Sprintf("--port %d is not a port", ui.port), try: "--port 8766, or 0 for any that is free"}
	}
	serve.logFile = cmp.Or(serve.logFile, uiLog(sys))
	s, err := newMCPServer(sys, opts, serve, manyClients)
	if err != nil {
		return err
	}
	defer s.close()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ui.port))
	listener, err := s.listen(ctx, address, address, "serving the page")
	if err != nil {
		return err
	}
	serving, stop := untilSignalled(ctx)
	defer stop()
	settings := server.HTTPOptions{PageOnly: true, Handlers: s.metrics(sys)}
	p := s.offerPage(serving, sys, &settings)
	settings.Token = p.Token(ui.readOnly) // of what is beside the page
	if onTerminal(sys.Stderr) {
		_, _ = fmt.Fprintf(sys.Stderr, "Ctrl-C closes the page; threads go on. What is done on it is in %s\n", serve.logFile)
	}
	line := "page " + pageAddress(listener.Addr(), nil, "token", settings.Token) + "\n"
	if _, err := io.WriteString(sys.Stdout, line); err != nil {
		return errors.Join(err, listener.Close())
	}
	if !ui.noOpen {
		openBrowser(sys, s.projects.chosen, pageAddress(listener.Addr(), nil, "code", p.Code(ui.readOnly)))
	}
	err = s.ServeHTTPOn(serving, listener, settings)
	if ctx.Err() != nil {
		return nil // a signal is how it ends
	}
	return err
}

// uiLog is where the log goes that would be in the way of a person at a terminal; empty:
// to standard error.
func uiLog(sys System) string {
	if !onTerminal(sys.Stderr) {
		return ""
	}
	cache, err := search.CacheDir(sys.Getenv)
	if err != nil || os.MkdirAll(cache, 0o700) != nil {
		return ""
	}
	return filepath.Join(cache, "ui.log")
}

// offerPage has a server serve the page until ctx ends.
func (m *mcpServer) offerPage(ctx context.Context, sys System, settings *server.HTTPOptions) *webpage.Page {
	p := webpage.New(webpage.Options{
		Projects: shownProjects{m.projects}, Version: version(), Now: sys.Now, Log: m.log, Ended: ctx.Done(), Client: clientOf,
	})
	settings.Page, settings.IsPage = p, webpage.IsPath
	return p
}

// clientOf tells who has opened a connection, as far as it can be known: a process that cleared
// its environment and left its parents is taken for a person's.
func clientOf(client, server netip.AddrPort) webpage.Client {
	from, known := process.ClientOf(client, server)
	if !known {
		return webpage.Client{}
	}
	who := webpage.Client{Another: from.User != os.Getuid() && from.User != 0}
	if from.PID == 0 {
		return who
	}
	who.Thread = isOfThread(from.PID)
	return who
}

// isOfThread reports whether a process is one of a thread's, as far as it can be known.
func isOfThread(pid int) bool {
	if process.MarkOf(pid) != "" {
		return true
	}
	for args := range process.AncestryOf(pid) {
		if spawn.IsThread(args) {
			return true
		}
	}
	return false
}

// fromCommand reports whether a command of a thread has opened a connection. The thread's own process, which asks
// servers as its signed tools say, is none.
func fromCommand(client, server netip.AddrPort) bool {
	from, known := process.ClientOf(client, server)
	if !known || from.PID == 0 {
		return false
	}
	itself := true
	for args := range process.AncestryOf(from.PID) {
		if spawn.IsThread(args) {
			return !itself
		}
		itself = false
	}
	return process.MarkOf(from.PID) != ""
}

// pageAddress is where a browser finds the page. The fragment is sent to nobody.
func pageAddress(listening net.Addr, hosts []string, name, secret string) string {
	address := listening.String()
	if tcp, ok := listening.(*net.TCPAddr); ok {
		host := tcp.IP.String()
		switch {
		case len(hosts) > 0 && !tcp.IP.IsLoopback():
			host = hosts[0]
		case tcp.IP.IsUnspecified():
			host = "127.0.0.1"
		}
		address = net.JoinHostPort(host, strconv.Itoa(tcp.Port))
	}
	return "http://" + address + "/#" + name + "=" + secret
}

// desktopVariables are what a program needs to find the person's screen and browser.
var desktopVariables = []string{
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "DESKTOP_SESSION", "KDE_FULL_SESSION", "BROWSER", "WSL_DISTRO_NAME",
}

// openBrowser opens an address, or does nothing: it was printed. The browser gets no keys,
// since others can read its environment, and its arguments.
func openBrowser(sys System, project, address string) {
	name := browserCommand(sys)
	environ := process.Outside(sys.Environ, project)
	path, err := process.Find(environ, name)
	if name == "" || err != nil {
		return
	}
	env, _ := process.ThreadEnv(environ)
	for _, name := range desktopVariables {
		if value := sys.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	cmd := exec.Command(path, address) //nolint:noctx,gosec // it outlives this command; the person's own browser
	cmd.Env = env
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // how it ends is the person's to see
	}
}

// browserCommand is what opens an address on this system; empty: nothing can.
func browserCommand(sys System) string {
	if own := sys.Getenv("BROWSER"); own != "" && !strings.ContainsAny(own, " :%") {
		return own
	}
	if runtime.GOOS == "darwin" {
		return "open"
	}
	if sys.Getenv("DISPLAY") == "" && sys.Getenv("WAYLAND_DISPLAY") == "" && sys.Getenv("WSL_DISTRO_NAME") == "" {
		return ""
	}
	return "xdg-open"
}

// shownProjects are the projects of a server as the page names them.
type shownProjects struct{ *projects }

// maxShown bounds how many projects the page lists.
const maxShown = 200

// List implements [webpage.Projects]: the one chosen at start, those that clients have
// opened, and those that lie in the folders that clients may work in.
func (s shownProjects) List() []webpage.Named {
	var paths []string
	add := func(path string) {
		if path != "" && !slices.Contains(paths, path) && len(paths) < maxShown {
			paths = append(paths, path)
		}
	}
	add(s.chosen)
	var opened []string
	for _, p := range s.opened() {
		opened = append(opened, p.path)
	}
	slices.Sort(opened)
	for _, path := range opened {
		add(path)
	}
	if !s.Several() {
		return named(paths) // paths within the one project are a part of it
	}
	for _, root := range s.allowed {
		inside, _ := filepath.Glob(filepath.Join(globbed(root), "*", ".ai"))
		for _, ai := range append([]string{filepath.Join(root, ".ai")}, inside...) {
			if info, err := os.Stat(ai); err == nil && info.IsDir() {
				add(filepath.Dir(ai))
			}
		}
	}
	return named(paths)
}

// globbed is a path as a pattern that matches it alone.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// named gives each path a name: its last part, with as many above it as tell it from the
// others.
func named(paths []string) []webpage.Named {
	list := make([]webpage.Named, len(paths))
	for i, path := range paths {
		parts := strings.Split(filepath.ToSlash(path), "/")
		for n := 1; n <= len(parts); n++ {
			name := strings.Join(parts[len(parts)-n:], "/")
			list[i] = webpage.Named{Name: cmp.Or(name, "/"), Path: path}
			if !slices.ContainsFunc(paths, func(other string) bool {
				return other != path && strings.HasSuffix(filepath.ToSlash(other), "/"+name)
			}) {
				break
			}
		}
	}
	return list
}

// Open implements [webpage.Projects].
func (s shownProjects) Open(_ context.Context, name string) (*webpage.Project, error) {
	for _, known := range s.List() {
		if name != "" && known.Name != name {
			continue
		}
		p, err := s.get(known.Path)
		if err != nil {
			return nil, err
		}
		return &webpage.Project{Name: known.Name, Project: s.offered(p), Export: exportFrom(s.sys, p)}, nil
	}
	return nil, tool.Faultf(tool.CodeNoProject, "the page shows no project %.100q", name).WithHint("Choose one of those that are listed.")
}

// exportFrom makes recordings as "threads export" does.
func exportFrom(sys System, p *project) func(context.Context, thread.ID, webpage.Scope) ([]byte, error) {
	return func(ctx context.Context, id thread.ID, scope webpage.Scope) ([]byte, error) {
		r, err := recorderOf(sys, p).Record(ctx, id, replay.Scope(scope))
		if err != nil {
			return nil, err
		}
		key, err := p.itemKey()
		if err != nil {
			return nil, action.Fault(err)
		}
		var b bytes.Buffer
		err = r.Write(&b, key)
		return b.Bytes(), err
	}
}
