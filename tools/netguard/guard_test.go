package netguard

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestIsPublic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true, "64:ff9b::808:808": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "127.255.255.254": false, "0.0.0.0": false, "10.1.2.3": false, "100.64.0.1": false, "169.254.1.1": false,
		"172.31.255.255": false, "172.32.0.1": true, "192.168.0.1": false, "198.18.0.1": false, "224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"168.63.129.16": false, "::": false, "::1": false, "::127.0.0.1": false, "::ffff:10.0.0.1": false, "fe80::1": false, "fc00::1": false, "fd00:ec2::254": false,
		"ff02::1": false, "2001:db8::1": false, "2001::1": false, "2002:7f00:1::": false, "64:ff9b::7f00:1": false, "64:ff9b:1::7f00:1": false, "fec0::1": false,
		"3fff::1": false, "100::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func TestExempt(t *testing.T) {
	t.Parallel()
	e := exemptOf([]string{"Wiki.Internal", "localhost:3000", "*.corp.example", "10.1.0.0/16", "192.168.7.7", "[fd00::7]", "127.0.0.1:8080", "169.254.0.0/16", "*"})
	for _, tt := range []struct {
		host, port, address string
		want                bool
	}{
		{"wiki.internal", "80", "10.9.9.9", true}, {"WIKI.internal.", "443", "127.0.0.1", true}, {"other.internal", "80", "10.9.9.9", false},
		{"localhost", "3000", "127.0.0.1", true}, {"localhost", "3001", "127.0.0.1", false},
		{"a.corp.example", "80", "10.9.9.9", true}, {"corp.example", "80", "10.9.9.9", false}, {"evilcorp.example", "80", "10.9.9.9", false},
		{"anything", "80", "10.1.2.3", true}, {"anything", "80", "10.2.2.3", false}, {"anything", "80", "::ffff:10.1.2.3", true},
		{"anything", "80", "192.168.7.7", true}, {"anything", "80", "192.168.7.8", false}, {"anything", "80", "fd00::7", true},
		{"127.0.0.1", "8080", "127.0.0.1", true}, {"127.0.0.1", "8081", "127.0.0.1", false}, {"::ffff:127.0.0.1", "8080", "127.0.0.1", true},
		{"wiki.internal", "80", "169.254.169.254", false}, {"anything", "80", "169.254.169.254", false}, {"anything", "80", "169.254.1.1", true},
	} {
		if got := e.address(netip.MustParseAddr(tt.address), e.name(tt.host, tt.port)); got != tt.want {
			t.Errorf("%s:%s at %s: %t", tt.host, tt.port, tt.address, got)
		}
	}
	if one := exemptOf([]string{"169.254.169.254"}); !one.address(netip.MustParseAddr("169.254.169.254"), false) {
		t.Error("a metadata address that is named by itself is refused")
	}
}

// TestOwnAddressIsRefused: an address of this machine, or of a network that it is part of, is not
// connected to however public it looks, unless it is exempt; and none is where they are not known.
func TestOwnAddressIsRefused(t *testing.T) {
	t.Parallel()
	network := func(text string) net.Addr {
		ip, n, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		return &net.IPNet{IP: ip, Mask: n.Mask}
	}
	here := func() ([]net.Addr, error) {
		return []net.Addr{network("8.8.4.4/29"), network("9.9.9.9/32"), network("11.0.0.1/0"), network("2606:4700::7/64")}, nil
	}
	for _, tt := range []struct {
		address string
		allowed []string
		want    bool
	}{
		{"8.8.4.4", nil, false}, {"8.8.4.1", nil, false}, {"8.8.4.9", nil, true},
		{"9.9.9.9", nil, false}, {"9.9.9.8", nil, true}, {"::ffff:9.9.9.9", nil, false}, {"64:ff9b::909:909", nil, false},
		{"11.0.0.1", nil, false}, {"11.0.0.2", nil, true}, // a mask of 0 is no network
		{"2606:4700::8", nil, false}, {"2606:4700:1::8", nil, true},
		{"9.9.9.9", []string{"9.9.9.9"}, true},
	} {
		e := exemptOf(tt.allowed)
		e.networks = here
		if got := e.address(netip.MustParseAddr(tt.address), false); got != tt.want {
			t.Errorf("%s: %t", tt.address, got)
		}
	}
	unknown := exemptOf(nil)
	unknown.networks = func() ([]net.Addr, error) { return nil, errors.New("not told") }
	if unknown.address(netip.MustParseAddr("8.8.8.8"), false) {
		t.Error("an address is connected to that may be of this machine")
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	long := "https://example.com/" + strings.Repeat("a", MaxURL-len("https://example.com/"))
	for address, want := range map[string]bool{
		"http://example.com": true, "https://example.com/a?b#c": true, "HTTP://example.com/": true, "https://[::1]:8080/": true, long: true, long + "a": false,
		"ftp://example.com/": false, "file:///etc/passwd": false, "gopher://example.com": false, "example.com": false, "//example.com/": false, "javascript:alert(1)": false,
		"http://": false, "https:///path": false, "http://:80/": false, "http://ada@example.com/": false, "http://ada:secret@example.com/": false,
	} {
		err := CheckURL(parsed(t, address))
		if _, ok := errors.AsType[AddressError](err); (err == nil) != want || ok == want {
			t.Errorf("%.60s: %v", address, err)
		}
	}
}

// TestExemptIsReached: an address of this machine is connected to where the user exempts it alone,
// and redirects lead to pages alone.
func TestExemptIsReached(t *testing.T) {
	t.Parallel()
	hops := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/named":
			http.Redirect(w, r, "http://ada:secret@"+r.Host+"/", http.StatusFound)
		case "/round":
			hops++
			http.Redirect(w, r, "/round", http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	get := func(g *Guard, path string) error {
		resp, err := g.Client().Get(server.URL + path)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	if _, private := errors.AsType[*PrivateError](get(New(Settings{}, nil), "/")); !private {
		t.Error("this machine was connected to")
	}
	g := New(Settings{AllowHosts: []string{strings.TrimPrefix(server.URL, "http://")}}, nil)
	if err := get(g, "/"); err != nil {
		t.Errorf("exempt: %v", err)
	}
	for _, path := range []string{"/file", "/named", "/round"} {
		if _, refused := errors.AsType[AddressError](get(g, path)); !refused {
			t.Errorf("%s was followed", path)
		}
	}
	if hops != maxRedirects {
		t.Errorf("%d hops, want %d", hops, maxRedirects)
	}
}

// TestAttackThroughProxy: requests go through the proxy of the person's environment, and a model names hosts that only a private network has. Hosts that are known to be private are not asked of the proxy.
func TestAttackThroughProxy(t *testing.T) {
	t.Parallel()
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Host)
		_, _ = w.Write([]byte("from the proxy"))
	}))
	t.Cleanup(proxy.Close)
	g := New(Settings{UseProxy: true}, nil)
	g.through = func(*http.Request) (*url.URL, error) { return parsed(t, proxy.URL), nil }
	get := func(address string) error {
		resp, err := g.Client().Get(address)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	if err := get("http://8.8.8.8/page"); err != nil || strings.Join(asked, " ") != "8.8.8.8" {
		t.Fatalf("%v: %v", asked, err)
	}
	for _, address := range []string{"http://127.0.0.1/", "http://localhost/", "http://169.254.169.254/", "http://10.0.0.1/"} {
		if _, private := errors.AsType[*PrivateError](get(address)); !private {
			t.Errorf("%s was asked of the proxy", address)
		}
	}
	if len(asked) != 1 {
		t.Errorf("asked for %v", asked)
	}
}

func parsed(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
