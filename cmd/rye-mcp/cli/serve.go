package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

const (
	// exampleAddress is what messages suggest for --http.
	exampleAddress = "127.0.0.1:8765"
	// minToken is the shortest token, in characters: a shorter one can be
	// guessed.
	minToken = 16
	// maxTokenFile is how many bytes of a token file are read.
	maxTokenFile = 4096
)

// httpFlags are the flags of serve that are about HTTP.
type httpFlags struct {
	address   string
	tokenFile string
	origins   []string
	hosts     []string
	sessions  int
	timeout   time.Duration
	page      pageMode
}

func newServeCommand(sys System, opts *options) *cobra.Command {
	var (
		serve serveOptions
		web   httpFlags
	)
	web.page = pageOn
	cmd := &cobra.Command{
		Use:   "serve --http ADDR",
		Short: "Serve MCP over HTTP, to several clients at once",
		Long: `Serve MCP over HTTP until it is interrupted: Streamable HTTP at /mcp, the older
HTTP with SSE at /sse and /message, /healthz, and at / a page on which you look
at threads and answer them. The first line on standard output has the address,
which matters with port 0, the second that of the page with the token that it
asks for: whoever has it acts as you. "rye-mcp ui" serves the page alone.

Without a token only this machine can connect, and web pages of other machines
are refused. Threads go on when the server ends.`,
		Example: `  rye-mcp serve --http 127.0.0.1:8765
  rye-mcp serve --http 0.0.0.0:8765 --token-file ~/rye-token --allow-host build.example.org`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serveHTTP(cmd.Context(), sys, *opts, serve, web)
		},
	}
	serve.addFlags(cmd, "the project chosen at start")
	flags := cmd.Flags()
	flags.StringVar(&web.address, "http", "", "address to listen on, such as "+exampleAddress+"; without a host this machine only")
	flags.StringVar(&web.tokenFile, "token-file", "", "file with the bearer token that clients must send")
	flags.StringArrayVar(&web.origins, "allow-origin", nil, "let web pages of this `origin` in, such as https://example.org; repeat for more")
	flags.StringArrayVar(&web.hosts, "allow-host", nil, "`name` of this machine that clients may use in addresses; repeat for more")
	flags.Var(&web.page, "page", "the page at /: on, read-only or off")
	completeFlag(cmd, "page", pageModes)
	flags.IntVar(&web.sessions, "max-sessions", 256, "how many clients may have a session at once")
	flags.Var(asDuration(&web.timeout, 30*time.Minute), "session-timeout", "end a session that was not used for so long")
	return cmd
}

// serveHTTP serves until ctx ends. The threads it started go on.
func serveHTTP(ctx context.Context, sys System, opts options, serve serveOptions, web httpFlags) error {
	settings, err := web.settings()
	if err != nil {
		return err
	}
	address, err := web.listenAddress(ctx, settings.Token != "")
	if err != nil {
		return err
	}
	s, err := newMCPServer(sys, opts, serve, manyClients)
	if err != nil {
		return err
	}
	defer s.close()
	listener, err := s.listen(ctx, web.address, address, "serving MCP over HTTP")
	if err != nil {
		return err
	}
	serving, stop := untilSignalled(ctx)
	defer stop()
	lines := fmt.Sprintf("serving http://%s/mcp\n", listener.Addr())
	if web.page != pageOff && !belowThread(sys) { // a model is no person
		p := s.offerPage(serving, sys, &settings)
		lines += "page " + pageAddress(listener.Addr(), web.hosts, "token", p.Token(web.page == pageReadOnly)) + "\n"
	}
	// One write: the reader of the first line may be gone before a second one.
	if _, err := io.WriteString(sys.Stdout, lines); err != nil {
		return errors.Join(err, listener.Close())
	}
	settings.Handlers = s.metrics(sys)
	err = s.ServeHTTPOn(serving, listener, settings)
	if ctx.Err() != nil {
		return nil // a signal is how a server ends
	}
	return err
}

// listen opens the port, and the project that clients most likely want. Named is the
// address as the person has written it, what is what the log says of it.
func (m *mcpServer) listen(ctx context.Context, named, address, what string) (net.Listener, error) {
	if err := m.projects.chooseNow(); err != nil {
		return nil, err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &usageError{message: fmt.Sprintf("cannot serve at %s: %v", named, err), try: "another port, or port 0 for any that is free"}
	}
	m.projects.openFirst()
	m.log.Info().Str("version", version()).Int("pid", os.Getpid()).Str("address", listener.Addr().String()).
		Str("project", m.projects.chosen).Strs("allowed_roots", m.projects.allowed).Msg(what)
	return listener, nil
}

// settings checks the flags and reads the token.
func (f httpFlags) settings() (server.HTTPOptions, error) {
	settings := server.HTTPOptions{Origins: f.origins, Hosts: f.hosts, MaxSessions: f.sessions, SessionTimeout: f.timeout, FromThread: fromCommand}
	for _, origin := range f.origins {
		u, err := url.Parse(strings.TrimSuffix(origin, "/"))
		if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != strings.TrimSuffix(origin, "/") {
			return settings, &usageError{message: fmt.Sprintf("--allow-origin %s is not an origin", origin), try: "--allow-origin https://example.org"}
		}
	}
	for _, host := range f.hosts {
		if u, err := url.Parse("http://" + host); err != nil || u.Host != host || u.Port() != "" {
			return settings, &usageError{message: fmt.Sprintf("--allow-host %s is not the name of a host", host), try: "--allow-host build.example.org"}
		}
	}
	if f.sessions < 1 || f.timeout <= 0 {
		return settings, &usageError{message: "--max-sessions and --session-timeout must be above zero", try: "--max-sessions 256 --session-timeout 30m"}
	}
	if f.tokenFile == "" {
		return settings, nil
	}
	var err error
	settings.Token, err = readToken(f.tokenFile)
	return settings, err
}

// listenAddress resolves --http. Without a token only addresses of this
// machine alone will do.
func (f httpFlags) listenAddress(ctx context.Context, hasToken bool) (string, error) {
	if f.address == "" {
		return "", &usageError{message: "serve needs an address", try: "rye-mcp serve --http " + exampleAddress}
	}
	host, port, err := net.SplitHostPort(f.address)
	if err != nil {
		return "", &usageError{message: fmt.Sprintf("--http %s is not an address with a port", f.address), try: "--http " + exampleAddress}
	}
	if host == "" {
		host = "127.0.0.1"
	}
	addresses, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return "", &usageError{message: fmt.Sprintf("--http %s: %v", f.address, err), try: "--http " + exampleAddress}
	}
	if !addresses[0].IP.IsLoopback() && !hasToken {
		return "", &usageError{
			message: fmt.Sprintf("--http %s is open to other machines, and without a token anybody there could run commands here", f.address),
			try:     "--token-file FILE, or --http " + net.JoinHostPort("127.0.0.1", port) + " for this machine only",
		}
	}
	return net.JoinHostPort(addresses[0].String(), port), nil
}

// readToken reads a token that only its owner can read.
func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", &usageError{message: fmt.Sprintf("--token-file: %v", err), try: "umask 077; openssl rand -hex 32 > " + path}
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", &usageError{message: fmt.Sprintf("--token-file: %v", err), try: "--token-file with a file that can be read"}
	}
	if info.IsDir() {
		return "", &usageError{message: "--token-file: " + path + " is a folder", try: "--token-file with a file that can be read"}
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", &usageError{message: fmt.Sprintf("others may read the token file %s (mode %04o)", path, info.Mode().Perm()), try: "chmod 600 " + path}
	}
	content, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return "", &usageError{message: fmt.Sprintf("--token-file: %v", err), try: "--token-file with a file that can be read"}
	}
	token := strings.TrimSpace(string(content))
	if len(token) < minToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", &usageError{
			message: fmt.Sprintf("the token in %s must be one word of at least %d visible ASCII characters", path, minToken),
			try:     "openssl rand -hex 32 > " + path,
		}
	}
	return token, nil
}

// chooseNow fixes what clients may work in, as they are not the ones who
// started the server: the project is --project, else the working directory when
// it is one and is allowed; without --allow-root it is the only one.
func (ps *projects) chooseNow() error {
	dir, dirErr := ps.workingDir()
	if ps.chosen == "" && dirErr == nil {
		if real, err := canonical(dir); err == nil && ps.allows(real) {
			ps.chosen = real
		}
	}
	switch {
	case len(ps.allowed) > 0:
		return nil
	case ps.chosen != "":
		ps.allowed = []string{ps.chosen}
		return nil
	}
	return &usageError{
		message: fmt.Sprintf("no project to serve: %v, and clients must not choose any folder there is", dirErr),
		try:     "--project FOLDER, or --allow-root FOLDER to let clients choose a project in it",
	}
}
