package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

const (
	connectTime   = 10 * time.Second
	maxHeaders    = 64 << 10
	maxRedirects  = 10
	userAgent     = "Mozilla/5.0 (compatible; rye-mcp)"
	maxURL        = 8 << 10
	schemeHTTP    = "http"
	schemeHTTPS   = "https"
	proxySettings = "web.use_proxy"
	hostsSettings = "web.allow_hosts"
)

// privateError says that a host leads where no page is fetched from.
type privateError struct{ host string }

func (e *privateError) Error() string {
	return item.Shown(e.host) + " is an address of this machine, of a private network or of cloud metadata"
}

// connector makes connections for one call.
type connector struct {
	exempt   exempt
	resolver *net.Resolver
	useProxy bool

	mu      sync.Mutex
	proxies map[string]bool // addresses of proxies that requests were sent through
}

func newConnector(set config.Web, resolver *net.Resolver) *connector {
	return &connector{exempt: exemptOf(set.AllowHosts), resolver: resolver, useProxy: set.UseProxy, proxies: map[string]bool{}}
}

// client keeps no cookies and no connections, and follows redirects that lead to a
// page.
func (c *connector) client() *http.Client {
	transport := &http.Transport{
		DialContext: c.dial, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: connectTime, MaxResponseHeaderBytes: maxHeaders,
	}
	if c.useProxy {
		transport.Proxy = c.proxy
	}
	return &http.Client{Transport: transport, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return said(fmt.Sprintf("more than %d redirects", maxRedirects))
		}
		return checkURL(req.URL)
	}}
}

// checkURL refuses what is no page on the web.
func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != schemeHTTP && u.Scheme != schemeHTTPS:
		return said("only http and https addresses can be fetched")
	case u.Hostname() == "":
		return said("the address names no host")
	case u.User != nil:
		return said("the address holds a user name or password")
	case len(u.String()) > maxURL:
		return said(fmt.Sprintf("the address is longer than %d bytes", maxURL))
	}
	return nil
}

// dial connects to a host whose address may be connected to. The address is that
// of the socket: nothing looks the name up again.
func (c *connector) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	isProxy := c.proxies[address]
	c.mu.Unlock()
	named := c.exempt.name(host, port)
	dialer := net.Dialer{Timeout: connectTime, Resolver: c.resolver}
	if !isProxy {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil || !c.exempt.address(to.Addr(), named) {
				return &privateError{host}
			}
			return nil
		}
	}
	return dialer.DialContext(ctx, network, address)
}

// proxy is that of the environment. A host that is known to be private is not asked
// of it; a name that only the proxy knows is.
func (c *connector) proxy(req *http.Request) (*url.URL, error) {
	through, err := http.ProxyFromEnvironment(req)
	if through == nil || err != nil {
		return nil, err
	}
	host, port := req.URL.Hostname(), portOf(req.URL)
	resolver := c.resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addresses, _ := resolver.LookupNetIP(req.Context(), "ip", host)
	for _, a := range addresses {
		if !c.exempt.address(a, c.exempt.name(host, port)) {
			return nil, &privateError{host}
		}
	}
	c.mu.Lock()
	c.proxies[net.JoinHostPort(through.Hostname(), portOf(through))] = true
	c.mu.Unlock()
	return through, nil
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == schemeHTTPS:
		return "443"
	case u.Scheme == "socks5", u.Scheme == "socks5h":
		return "1080"
	}
	return "80"
}
