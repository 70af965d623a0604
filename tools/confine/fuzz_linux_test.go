package confine

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
)

// FuzzProxy: whatever a command writes to the proxy, nothing is connected to but what is declared.
func FuzzProxy(f *testing.F) {
	const declared = "127.0.0.1:81"
	for _, raw := range []string{
		"GET http://127.0.0.1:81/ HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT 127.0.0.1:81 HTTP/1.1\r\n\r\n",
		"GET https://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n", "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n", "POST http://127.0.0.1:81@10.0.0.1/ HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		p := &proxy{network: Network{Hosts: []string{declared}}, dialer: &net.Dialer{
			ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
				if address != declared {
					t.Errorf("%q connects to %s", raw, address)
				}
				return errors.New("not here")
			},
		}}
		p.ServeHTTP(httptest.NewRecorder(), r)
	})
}

// FuzzHostPattern: what is taken for a host that a tool declares matches that host at its ports, and
// no other.
func FuzzHostPattern(f *testing.F) {
	f.Add("api.example.com", "api.example.com", "443")
	f.Add("*.example.com:8080", "a.example.com", "8080")
	f.Add("localhost", "evil.localhost", "80")
	f.Fuzz(func(t *testing.T, pattern, host, port string) {
		n, err := ParseNetwork([]any{pattern})
		if err != nil {
			return
		}
		if n.Off() || n.All || len(n.Hosts) != 1 {
			t.Fatalf("%q is %+v", pattern, n)
		}
		if n.allows(host, port) && n.allows("other-"+host, port) && pattern[0] != '*' {
			t.Fatalf("%q allows %q and more", pattern, host)
		}
		if n.allows(host, "22") && !bytes.HasSuffix([]byte(pattern), []byte(":22")) {
			t.Fatalf("%q allows the port 22", pattern)
		}
	})
}
