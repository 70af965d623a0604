package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// guard lets in who may use the server; the page has one of its own behind it. Before all it keeps web pages out: a
// browser on this machine sends what any page tells it to, and only Host and
// Origin say which page that was.
type guard struct {
	server   *Server
	loopback bool // only this machine can reach the server
	token    *[sha256.Size]byte
	origins  []string
	hosts    []string
	page     http.Handler
	isPage   func(path string) bool
	pageOnly bool
	handled  []string // the paths of Handlers
	next     http.Handler
}

func newGuard(s *Server, loopback bool, opts HTTPOptions, next http.Handler) *guard {
	g := &guard{server: s, loopback: loopback, page: opts.Page, isPage: opts.IsPage, pageOnly: opts.PageOnly, next: next}
	for _, origin := range opts.Origins {
		g.origins = append(g.origins, strings.ToLower(strings.TrimSuffix(origin, "/")))
	}
	for _, host := range opts.Hosts {
		g.hosts = append(g.hosts, strings.ToLower(host))
	}
	for pattern := range opts.Handlers {
		_, path, _ := strings.Cut(pattern, "/")
		g.handled = append(g.handled, "/"+path)
	}
	if opts.Token != "" {
		sum := sha256.Sum256([]byte(opts.Token))
		g.token = &sum
	}
	return g
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.knowsHost(r.Host) {
		g.refuse(w, r, http.StatusForbidden, "this server is not called %q: start it with --allow-host to give it that name", item.Clip(r.Host, 100))
		return
	}
	if g.page != nil && g.isPage(r.URL.Path) {
		g.page.ServeHTTP(w, r) // which asks for a token of its own, and lets fewer origins in
		return
	}
	if g.pageOnly && r.URL.Path != "/healthz" && !slices.Contains(g.handled, r.URL.Path) {
		g.refuse(w, r, http.StatusNotFound, "only the page is served here: rye-mcp serve --http serves MCP clients too")
		return
	}
	if origins, present := r.Header["Origin"]; present {
		if len(origins) != 1 || !g.knowsOrigin(origins[0], r.Host) {
			g.refuse(w, r, http.StatusForbidden, "web pages of origin %q may not use this server: start it with --allow-origin to let them", item.Clip(strings.Join(origins, ", "), 100))
			return
		}
		if g.shareWith(w, r, origins[0]) {
			return
		}
	}
	if r.Method != http.MethodPost && r.ContentLength != 0 {
		g.refuse(w, r, http.StatusBadRequest, "only POST has a body")
		return
	}
	if r.URL.Path != "/healthz" && !g.hasToken(r) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="rye-mcp"`)
		g.refuse(w, r, http.StatusUnauthorized, "the header Authorization must be: Bearer, a blank, and the token in the server's token file")
		return
	}
	if isOfThread(r.Context()) {
		g.refuse(w, r, http.StatusForbidden, "a command of a thread has sent this: clients are of a person, and a thread starts others with rye_execute, within its own permissions")
		return
	}
	g.next.ServeHTTP(w, r)
}

// peerKey is where the context of a connection says whether a command of a thread has opened it.
type peerKey struct{}

// withPeer has a request find out who has opened its connection, once, as that is looked for among all processes.
func (o HTTPOptions) withPeer(ctx context.Context, conn net.Conn) context.Context {
	if o.FromThread == nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, sync.OnceValue(func() bool {
		client, err := netip.ParseAddrPort(conn.RemoteAddr().String())
		if err != nil {
			return false
		}
		server, err := netip.ParseAddrPort(conn.LocalAddr().String())
		return err == nil && o.FromThread(client, server)
	}))
}

func isOfThread(ctx context.Context) bool {
	asked, known := ctx.Value(peerKey{}).(func() bool)
	return known && asked()
}

func (g *guard) refuse(w http.ResponseWriter, r *http.Request, status int, format string, args ...any) {
	g.server.refuseHTTP(w, r, status, requestID{}, invalidRequest(format, args...))
}

// knowsHost reports whether a Host header names this server. A page that has
// its own name resolve to this machine sends that name. It cannot do so with
// an address, so those are fine where more than this machine gets in.
func (g *guard) knowsHost(hostport string) bool {
	host := hostOf(hostport)
	if slices.Contains(g.hosts, host) || isLocalName(host) {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil && !g.loopback
}

// knowsOrigin reports whether a web page may use the server that it calls host: one that Origins names, or one of
// the server's own port. A page that another port of this machine serves is somebody's, as that of a clone is.
func (g *guard) knowsOrigin(origin, host string) bool {
	origin = strings.ToLower(origin)
	if slices.Contains(g.origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || !g.loopback {
		return false
	}
	return "http://"+u.Host == origin && isLocalName(hostOf(u.Host)) && portOf(u.Host) == portOf(host)
}

// shareWith tells the browser that a page of origin may read the answer, and
// answers when that was all it asked.
func (g *guard) shareWith(w http.ResponseWriter, r *http.Request, origin string) (answered bool) {
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", mcp.HeaderSessionID)
	header.Add("Vary", "Origin")
	if r.Method != http.MethodOptions {
		return false
	}
	header.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	header.Set("Access-Control-Allow-Headers", strings.Join([]string{
		"Accept", "Authorization", "Content-Type", mcp.HeaderLastEventID,
		mcp.HeaderSessionID, mcp.HeaderProtocolVersion, mcp.HeaderMethod, mcp.HeaderName,
	}, ", "))
	w.WriteHeader(http.StatusNoContent)
	return true
}

// hasToken compares digests, which takes the same time for every wrong token.
func (g *guard) hasToken(r *http.Request) bool {
	if g.token == nil {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// hostOf is the name in a host that may have a port.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// portOf is the port in a host that may have none.
func portOf(hostport string) string {
	if _, port, err := net.SplitHostPort(hostport); err == nil {
		return port
	}
	return "80"
}

// isLocalName reports whether a host can only mean this machine.
func isLocalName(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
