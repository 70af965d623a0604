// Package netguard makes requests to addresses that somebody else has chosen: a
// model, a page, a redirect. It connects to the public internet alone, and to what
// the user has exempted. The address of the connection itself counts, so that no
// name leads elsewhere than when it was looked at.
package netguard

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

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

const (
	connectTime  = 10 * time.Second
	maxHeaders   = 64 << 10
	maxRedirects = 10
	// MaxURL is how long an address may be.
	MaxURL = 8 << 10

	schemeHTTP  = "http"
	schemeHTTPS = "https"
)

// Settings are the user's.
type Settings struct {
	AllowHosts []string // exempt: host, host:port, *.domain, an address or a network
	UseProxy   bool     // of the environment, which then decides what it reaches
}

// PrivateError says that a host leads to where nothing is fetched from.
type PrivateError struct{ Host string }

func (e *PrivateError) Error() string {
	return item.Shown(e.Host) + " is an address of this machine, of a private network or of cloud metadata"
}

// AddressError says why an address is none of the web. Its text repeats nothing of
// the address.
type AddressError string

func (e AddressError) Error() string { return string(e) }

// Guard makes connections. It is safe for concurrent use.
type Guard struct {
	exempt   exempt
	resolver *net.Resolver
	through  func(*http.Request) (*url.URL, error) // the proxy of a request; nil: there is none

	mu      sync.Mutex
	proxies map[string]bool // addresses of proxies that requests were sent through
}

// New returns a guard. Names are looked up with resolver; nil: that of the system.
func New(set Settings, resolver *net.Resolver) *Guard {
	g := &Guard{exempt: exemptOf(set.AllowHosts), resolver: resolver, proxies: map[string]bool{}}
	if set.UseProxy {
		g.through = http.ProxyFromEnvironment
	}
	return g
}

// Late is a transport that asks for the settings with each request.
func Late(settings func() (Settings, error), resolver *net.Resolver) http.RoundTripper {
	return late{settings, resolver}
}

type late struct {
	settings func() (Settings, error)
	resolver *net.Resolver
}

func (l late) RoundTrip(req *http.Request) (*http.Response, error) {
	set, err := l.settings()
	if err != nil {
		return nil, err
	}
	return New(set, l.resolver).Transport().RoundTrip(req)
}

// Transport keeps no connections.
func (g *Guard) Transport() *http.Transport {
	t := &http.Transport{
		DialContext: g.dial, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: connectTime, MaxResponseHeaderBytes: maxHeaders,
	}
	if g.through != nil {
		t.Proxy = g.proxy
	}
	return t
}

// Client keeps no cookies, and follows redirects that lead to a page.
func (g *Guard) Client() *http.Client {
	return &http.Client{Transport: g.Transport(), CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return AddressError(fmt.Sprintf("there are more than %d redirects", maxRedirects))
		}
		return CheckURL(req.URL)
	}}
}

// CheckURL refuses what is no page on the web. The error is an [AddressError].
func CheckURL(u *url.URL) error {
	switch {
	case u.Scheme != schemeHTTP && u.Scheme != schemeHTTPS:
		return AddressError("only http and https addresses can be fetched")
	case u.Hostname() == "":
		return AddressError("the address names no host")
	case u.User != nil:
		return AddressError("the address holds a user name or password")
	case len(u.String()) > MaxURL:
		return AddressError(fmt.Sprintf("the address is longer than %d bytes", MaxURL))
	}
	return nil
}

// dial connects to a host whose address may be connected to. The address is that
// of the socket: nothing looks the name up again.
func (g *Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	isProxy := g.proxies[address]
	g.mu.Unlock()
	named := g.exempt.name(host, port)
	dialer := net.Dialer{Timeout: connectTime, Resolver: g.resolver}
	if !isProxy {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil || !g.exempt.address(to.Addr(), named) {
				return &PrivateError{host}
			}
			return nil
		}
	}
	return dialer.DialContext(ctx, network, address)
}

// proxy is that of the environment. A host that is known to be private is not asked
// of it; a name that only the proxy knows is.
func (g *Guard) proxy(req *http.Request) (*url.URL, error) {
	through, err := g.through(req)
	if through == nil || err != nil {
		return nil, err
	}
	host, port := req.URL.Hostname(), portOf(req.URL)
	resolver := g.resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addresses, _ := resolver.LookupNetIP(req.Context(), "ip", host)
	for _, a := range addresses {
		if !g.exempt.address(a, g.exempt.name(host, port)) {
			return nil, &PrivateError{host}
		}
	}
	g.mu.Lock()
	g.proxies[net.JoinHostPort(through.Hostname(), portOf(through))] = true
	g.mu.Unlock()
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
