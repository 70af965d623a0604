package confine

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
)

// TestProxyPort: the port that is held against the declared hosts is the one that is dialled,
// whatever the scheme of the request is.
func TestProxyPort(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		declared, target string
		dialled          bool
	}{
		{"127.0.0.1:80", "http://127.0.0.1/", true},
		{"127.0.0.1:80", "https://127.0.0.1/", false},
		{"127.0.0.1:443", "https://127.0.0.1/", true},
		{"127.0.0.1:443", "http://127.0.0.1/", false},
		{"127.0.0.1:443", "http://127.0.0.1:443/", true},
		{"127.0.0.1", "https://127.0.0.1/", true},
		{"127.0.0.1", "https://127.0.0.1:8443/", false},
	} {
		var dialled []string
		p := &proxy{network: Network{Hosts: []string{tt.declared}}, dialer: &net.Dialer{
			ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
				dialled = append(dialled, address)
				return errors.New("not here")
			},
		}}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, tt.target, nil))
		if w.Code == http.StatusForbidden == tt.dialled || len(dialled) > 0 != tt.dialled {
			t.Errorf("%s with %s: %d, dialled %v", tt.target, tt.declared, w.Code, dialled)
		}
	}
}
