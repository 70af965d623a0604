package netguard

import (
	"net"
	"net/netip"
	"testing"
)

// FuzzAddress: whatever wraps an address of IPv4 in one of IPv6, it is judged as itself, and no entry
// of the setting opens the addresses of cloud metadata but one that names it by itself.
func FuzzAddress(f *testing.F) {
	for _, a := range []string{"127.0.0.1", "169.254.169.254", "8.8.8.8", "::1", "fe80::1", "64:ff9b::a9fe:a9fe", "2606:4700::1", "::ffff:10.0.0.1"} {
		f.Add(netip.MustParseAddr(a).AsSlice(), "169.254.0.0/16")
	}
	f.Add([]byte{169, 254, 169, 254}, "169.254.169.254")
	f.Add([]byte{10, 0, 0, 1}, "[::ffff:10.0.0.1]:80")
	f.Fuzz(func(t *testing.T, raw []byte, entry string) {
		a, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		plain := plainAddress(a)
		if again := plainAddress(plain); again != plain || isPublic(a) != isPublic(plain) {
			t.Fatalf("%s is %s is %s", a, plain, again)
		}
		if a.Is4() {
			b := a.As4()
			wrapped := nat64.Addr().As16()
			copy(wrapped[12:], b[:])
			for _, other := range []netip.Addr{netip.AddrFrom16(a.As16()), netip.AddrFrom16(wrapped)} {
				if plainAddress(other) != a || isPublic(other) != isPublic(a) {
					t.Fatalf("%s is judged otherwise as %s", a, other)
				}
			}
		}
		e := exemptOf([]string{entry})
		e.networks = func() ([]net.Addr, error) { return nil, nil }
		for _, m := range metadata() {
			prefix, isPrefix := netip.ParsePrefix(entry)
			if e.address(m, true) && (isPrefix == nil && !prefix.IsSingleIP() || entry == "*") {
				t.Fatalf("%q opens %s", entry, m)
			}
		}
	})
}
