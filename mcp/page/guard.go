package page

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Codes of refusals that the page tells apart.
const (
	codeToken    tool.Code = "page_token"   // none, or none of this server
	codeReadOnly tool.Code = "read_only"    // the token may only look
	codeOrigin   tool.Code = "page_origin"  // another page asks
	codePerson   tool.Code = "not_a_person" // a thread asks
	codeStreams  tool.Code = "too_many_streams"
)

// refusal is a fault with the status that the answer has.
type refusal struct {
	status int
	fault  *tool.Fault
}

func (r *refusal) Error() string { return r.fault.Message }

func (r *refusal) Unwrap() error { return r.fault }

func refuse(status int, code tool.Code, format string, args ...any) *refusal {
	return &refusal{status, tool.Faultf(code, format, args...)}
}

// checkOrigin lets no other page ask: neither another site's, nor that of another port of
// this host. Programs that are no browser say nothing of it.
func checkOrigin(r *http.Request) *refusal {
	origins, present := r.Header["Origin"]
	if present && (len(origins) != 1 || !isOwnOrigin(origins[0], r.Host)) {
		return refuse(http.StatusForbidden, codeOrigin, "pages of origin %q may not use this one", item.Clip(strings.Join(origins, ", "), 100))
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
		return nil
	default:
		if followsLink(r) {
			return nil
		}
		return refuse(http.StatusForbidden, codeOrigin, "pages of another origin (%s) may not use this one", item.Clip(site, 100))
	}
}

// isOwnOrigin reports whether an origin is that of a page at this host. In front of a
// server that others reach there can be one that speaks TLS.
func isOwnOrigin(origin, host string) bool {
	if strings.EqualFold(origin, "http://"+host) {
		return true
	}
	return strings.EqualFold(origin, "https://"+host) && !isLocal(host)
}

// isLocal reports whether a host with or without port can only mean this machine.
func isLocal(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") || err == nil && ip.IsLoopback()
}

// followsLink reports whether a person has come by a link to the page itself, which
// may stand anywhere.
func followsLink(r *http.Request) bool {
	return r.Method == http.MethodGet && !isAPI(r.URL.Path) &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func isAPI(path string) bool { return path == "/ui/api" || strings.HasPrefix(path, "/ui/api/") }

// secretParameters are names under which somebody may give a token away in an address.
var secretParameters = []string{"token", "access_token", "code", "bearer", "authorization"}

// admit finds the token of a request, and refuses what it may not do.
func (p *Page) admit(r *http.Request) (token, *refusal) {
	if appFrom(r.Context()) != nil {
		return token{name: appName}, nil
	}
	for name := range r.URL.Query() {
		if slices.Contains(secretParameters, strings.ToLower(name)) {
			p.denied.note(p, r, "token in the address")
			return token{}, refuse(http.StatusBadRequest, codeToken,
				"a token in an address can be read by others: it belongs in the header Authorization, after Bearer and a blank")
		}
	}
	if refused := checkBody(r); refused != nil {
		return token{}, refused
	}
	if r.URL.Path == exchangePath {
		return token{}, p.checkClient(r) // a client that may not have a token does not use up the code
	}
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		p.denied.note(p, r, "no token")
		return token{}, withoutToken("the header Authorization must be: Bearer, a blank, and the token of the page's address")
	}
	found, ok := p.tokens.find(given[0])
	if !ok {
		p.denied.note(p, r, "wrong token")
		return token{}, withoutToken("this token is not of this server: it was started again, or the token is that of something else")
	}
	if found.readOnly && r.Method != http.MethodGet {
		return found, refuse(http.StatusForbidden, codeReadOnly, "this page may only look: it was opened with --read-only")
	}
	return found, p.checkClient(r)
}

// checkClient refuses changes that a thread asks for: its tools can read what this user's
// processes were started with, and so come by a code or a token. A code, which other users
// can read too, is for the user who has opened the browser. It comes last, as it looks at
// all processes.
func (p *Page) checkClient(r *http.Request) *refusal {
	if r.Method != http.MethodPost {
		return nil
	}
	who := p.clientOf(r)
	switch {
	case who.Thread:
		p.denied.note(p, r, "a thread")
		return refuse(http.StatusForbidden, codePerson, "the page acts for a person, and a thread is none")
	case who.Another && r.URL.Path == exchangePath:
		p.denied.note(p, r, "another user")
		return refuse(http.StatusForbidden, codePerson, "this address was made for another user of this machine")
	}
	return nil
}

func (p *Page) clientOf(r *http.Request) Client {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if p.client == nil || !ok {
		return Client{}
	}
	server, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return Client{}
	}
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return Client{}
	}
	return p.client(client, server)
}

func withoutToken(message string) *refusal {
	r := refuse(http.StatusUnauthorized, codeToken, "%s", message)
	r.fault.Hint = "Open the address that the server has printed last."
	return r
}

// checkBody holds a request against what forms of other pages can send.
func checkBody(r *http.Request) *refusal {
	switch r.Method {
	case http.MethodPost:
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" {
			return refuse(http.StatusUnsupportedMediaType, tool.CodeBadArguments, "the header Content-Type must be application/json")
		}
	case http.MethodGet:
		if r.ContentLength != 0 {
			return refuse(http.StatusBadRequest, tool.CodeBadArguments, "only POST has a body")
		}
	default:
		return refuse(http.StatusMethodNotAllowed, tool.CodeBadArguments, "only GET and POST are served")
	}
	return nil
}

// denials counts requests without a good token. Tokens are far too long to be guessed,
// so nobody is locked out for them: the log tells of them, once in a while.
type denials struct {
	mu    sync.Mutex
	count int
	told  time.Time
}

const tellDenialsEvery = 10 * time.Second

func (d *denials) note(p *Page, r *http.Request, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	now := p.now()
	if now.Sub(d.told) < tellDenialsEvery && !now.Before(d.told) {
		return
	}
	d.told = now
	p.log.Warn().Str("remote", r.RemoteAddr).Str("method", r.Method).Str("path", item.Clip(r.URL.Path, 200)).
		Str("reason", why).Int("refused", d.count).Msg("page: refused")
}
