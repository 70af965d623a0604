package confine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Mode is how much confinement is asked for: settings execution.confine.
type Mode string

// The modes.
const (
	Off           Mode = "off"
	WhenAvailable Mode = "when-available"
	Required      Mode = "required"
)

// ErrUnavailable says that confinement is required and this system has none, or not
// enough of it.
var ErrUnavailable = errors.New("confinement is not available")

// Policy is what a command may reach. Paths are absolute; those that do not exist are
// passed over.
type Policy struct {
	Writable []string // folders and files it may change, with all below
	ReadOnly []string // below Writable, and not to be changed all the same
	Hidden   []string // not to be seen
	Network  Network
}

// Network is what of the network a command may reach.
type Network struct {
	All   bool     // everything
	Hosts []string // through a proxy of ours: names, *.names below one, each with an optional :port
	// Credentials are put into requests by that proxy, so that the command does not hold
	// them. Their hosts may be reached.
	Credentials []Credential
}

// Credential is a key for a host. A command asks http://HOST/…, and the proxy asks URL
// with the header. Within TLS, which a command speaks with the host itself, nothing
// can be put.
type Credential struct {
	Host          string
	URL           string // scheme and host to ask, such as https://api.example.com
	Header, Value string
}

// Off reports whether nothing may be reached.
func (n Network) Off() bool { return !n.All && !n.throughProxy() }

func (n Network) throughProxy() bool { return len(n.Hosts)+len(n.Credentials) > 0 }

// ParseNetwork reads what a tool declares: true, false, or a list of hosts.
func ParseNetwork(declared any) (Network, error) {
	switch declared := declared.(type) {
	case nil:
		return Network{}, nil
	case bool:
		return Network{All: declared}, nil
	case []any:
		hosts := make([]string, 0, len(declared))
		for _, element := range declared {
			host, ok := element.(string)
			if !ok || !isHostPattern(host) {
				return Network{}, fmt.Errorf("network: %v is not a host such as api.example.com, *.example.com or localhost:8080", element)
			}
			hosts = append(hosts, strings.ToLower(host))
		}
		slices.Sort(hosts)
		return Network{Hosts: slices.Compact(hosts)}, nil
	}
	return Network{}, fmt.Errorf("network: it is true, false or a list of hosts, not %T", declared)
}

func isHostPattern(text string) bool {
	host, port, hasPort := strings.Cut(text, ":")
	name := strings.TrimPrefix(host, "*.")
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789.-") == "" &&
		(!hasPort || port != "" && strings.Trim(port, "0123456789") == "")
}

// credential is the one for a host that a command asks without TLS.
func (n Network) credential(host, port string) (Credential, bool) {
	i := slices.IndexFunc(n.Credentials, func(c Credential) bool { return port == "80" && strings.EqualFold(c.Host, host) })
	if i < 0 {
		return Credential{}, false
	}
	return n.Credentials[i], true
}

// allows reports whether a host and port are among the declared ones.
func (n Network) allows(host, port string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return slices.ContainsFunc(n.Hosts, func(pattern string) bool {
		name, wanted, hasPort := strings.Cut(pattern, ":")
		switch {
		case hasPort && wanted != port, !hasPort && port != "80" && port != "443":
			return false
		case strings.HasPrefix(name, "*."):
			return strings.HasSuffix(host, name[1:])
		}
		return host == name
	})
}

// Available is what this system can hold a command to.
type Available struct {
	Namespaces bool   // hides keys and state, protects settings, bounds the network
	Landlock   int    // version of the kernel's interface, which bounds writing; 0: none
	Why        string // there are no namespaces
}

// Whole reports whether a policy can be kept as a whole.
func (a Available) Whole() bool { return a.Namespaces && a.Landlock > 0 }

func (a Available) String() string {
	switch {
	case a.Whole():
		return "writing, keys and state, and the network are bounded"
	case a.Landlock > 0:
		return "only writing is bounded (no namespaces: " + a.Why + ")"
	case a.Namespaces:
		return "keys and state, and the network are bounded; writing is not (no Landlock)"
	}
	return "nothing is bounded (" + a.Why + ")"
}
