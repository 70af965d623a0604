package postgres_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
)

// TestAttackFalseServer: somebody between a machine and its database offers no TLS, or a
// certificate of their own. The connection is refused and does not count as a server that
// is away, so that nothing goes on without the store.
func TestAttackFalseServer(t *testing.T) {
	t.Parallel()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	t.Cleanup(certified.Close)
	for _, test := range []struct {
		name, sslmode string
		offers        byte // in answer to SSLRequest: S is yes, N is no
	}{
		{"no TLS", "require", 'N'},
		{"no TLS, and a certificate is asked for", "verify-full", 'N'},
		{"another's certificate", "verify-full", 'S'},
		{"another's certificate, any name", "verify-ca", 'S'},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					request := make([]byte, 8) // SSLRequest
					if _, err := io.ReadFull(conn, request); err == nil {
						_, _ = conn.Write([]byte{test.offers})
						_ = tls.Server(conn, certified.TLS).HandshakeContext(t.Context())
					}
					_ = conn.Close()
				}
			}()
			_, err = postgres.Connect(t.Context(), postgres.Options{URL: "postgres://me:hunter2@" + listener.Addr().String() + "/shop?sslmode=" + test.sslmode})
			if !errors.Is(err, postgres.ErrRefused) || errors.Is(err, postgres.ErrUnreachable) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v", err)
			}
		})
	}
}
