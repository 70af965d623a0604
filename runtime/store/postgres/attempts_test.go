package postgres

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestReasonOnce holds that an error says once why a server is not reached, although it was tried
// with and without TLS, and for each of several servers.
func TestReasonOnce(t *testing.T) {
	t.Parallel()
	var hosts []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, l.Addr().String())
		_ = l.Close()
	}
	_, err := pgconn.Connect(t.Context(), "postgres://u@"+strings.Join(hosts, ",")+"/d?sslmode=prefer")
	if !errors.As(err, new(*pgconn.ConnectError)) {
		t.Fatalf("connected, or another error: %v", err)
	}
	said := reason(err)
	for _, host := range hosts {
		if n := strings.Count(said, host+" ("); n != 1 {
			t.Errorf("%s is named %d times: %s", host, n, said)
		}
	}
}
