package langgraph

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// Scheme is what the scheme of a server's URL begins with: langgraph+http://host:2024, or
// langgraph+https://.
const Scheme = "langgraph+"

// errPlace says how a server is named. It does not repeat the text that was given, which
// may hold a key.
var errPlace = errors.New("a LangGraph server is named as langgraph+http://HOST:PORT or langgraph+https://HOST[:PORT][/PATH], without a user, a query and a fragment")

// Place is the address of a server.
type Place struct{ base url.URL }

// ParsePlace reads the URL of a server.
func ParsePlace(text string) (Place, error) {
	rest, ours := strings.CutPrefix(text, Scheme)
	u, err := url.Parse(rest)
	if !ours || err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" {
		return Place{}, errPlace
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return Place{*u}, nil
}

// String is the URL as it is written in settings.
func (p Place) String() string { return Scheme + p.base.String() }

// Plain reports whether what is sent can be read on its way: it is not encrypted, and the
// server is not on this machine.
func (p Place) Plain() bool {
	host := p.base.Hostname()
	ip := net.ParseIP(host)
	return p.base.Scheme == "http" && host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// at is the URL of a resource. Elements are ids, which need no escaping.
func (p Place) at(elements ...string) string {
	return p.base.JoinPath(elements...).String()
}
