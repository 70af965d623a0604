package netguard

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// notPublic are the parts of the address space that do not belong to the public
// internet (IANA's registries of special addresses), or lead to a private one.
var notPublic = sync.OnceValue(func() []netip.Prefix {
	var all []netip.Prefix
	for _, p := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", // of 2000::/3; nothing else of IPv6 is public
	} {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
})

// metadata are addresses at which clouds tell a machine its credentials. One of
// them is exempt only where it is named by itself.
var metadata = sync.OnceValue(func() []netip.Addr {
	return []netip.Addr{
		netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("169.254.170.2"), netip.MustParseAddr("169.254.170.23"),
		netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("192.0.0.192"),
		netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd00:ec2::23"), netip.MustParseAddr("fd20:ce::254"),
	}
})

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
)

// plainAddress is an address without the wrappings in which IPv6 carries one of
// IPv4 that is connected to in the end.
func plainAddress(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() && nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// isPublic reports whether an address belongs to the public internet.
func isPublic(a netip.Addr) bool {
	a = plainAddress(a)
	if !a.IsValid() || a.Is6() && !globalUnicast.Contains(a) || slices.Contains(metadata(), a) {
		return false
	}
	return !slices.ContainsFunc(notPublic(), func(p netip.Prefix) bool { return p.Contains(a) })
}

// isHere reports whether an address is one of this machine, or of a network that it
// is part of: a service may trust those whatever their address is.
func (e exempt) isHere(a netip.Addr) bool {
	networks, err := e.networks()
	if err != nil {
		return true
	}
	ip := net.IP(plainAddress(a).AsSlice())
	return slices.ContainsFunc(networks, func(network net.Addr) bool {
		n, ok := network.(*net.IPNet)
		if !ok {
			return false
		}
		ones, _ := n.Mask.Size()
		return n.IP.Equal(ip) || ones > 0 && n.Contains(ip)
	})
}

// exempt are the hosts of the setting web.allow_hosts.
type exempt struct {
	names    []hostPort
	prefixes []netip.Prefix
	networks func() ([]net.Addr, error) // of this machine
}

type hostPort struct{ host, port string } // port is empty for all

// exemptOf reads the setting; entries that name nothing exempt nothing.
func exemptOf(entries []string) exempt {
	e := exempt{networks: net.InterfaceAddrs}
	for _, entry := range entries {
		if p, err := netip.ParsePrefix(entry); err == nil {
			e.prefixes = append(e.prefixes, p.Masked())
			continue
		}
		host, port, err := net.SplitHostPort(entry)
		if err != nil {
			host, port = strings.Trim(entry, "[]"), ""
		}
		if a, err := netip.ParseAddr(host); err == nil {
			host = plainAddress(a).String()
			if port == "" {
				e.prefixes = append(e.prefixes, netip.PrefixFrom(plainAddress(a), plainAddress(a).BitLen()))
			}
		}
		e.names = append(e.names, hostPort{canonicalHost(host), port})
	}
	return e
}

func canonicalHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// name reports whether a host is exempt by its name.
func (e exempt) name(host, port string) bool {
	host = canonicalHost(host)
	if a, err := netip.ParseAddr(host); err == nil {
		host = plainAddress(a).String()
	}
	return slices.ContainsFunc(e.names, func(n hostPort) bool {
		if n.port != "" && n.port != port {
			return false
		}
		suffix, wild := strings.CutPrefix(n.host, "*")
		return n.host == host || wild && strings.HasPrefix(suffix, ".") && strings.HasSuffix(host, suffix)
	})
}

// address reports whether an address may be connected to for a host.
func (e exempt) address(a netip.Addr, named bool) bool {
	a = plainAddress(a)
	single := false
	for _, p := range e.prefixes {
		named = named || p.Contains(a)
		single = single || p.Contains(a) && p.Bits() == a.BitLen()
	}
	if slices.Contains(metadata(), a) {
		return single
	}
	return named || isPublic(a) && !e.isHere(a)
}
