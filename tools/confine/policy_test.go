package confine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestAllows: a declared host is reached at the ports of the web, or at the port that is named, in
// whatever case and with the dot of the root; a star stands for names below a domain.
func TestAllows(t *testing.T) {
	t.Parallel()
	n := Network{Hosts: []string{"api.example.com", "*.corp.example", "localhost:8080", "10.0.0.7"}}
	for _, tt := range []struct {
		host, port string
		want       bool
	}{
		{"api.example.com", "443", true}, {"api.example.com", "80", true}, {"api.example.com", "22", false}, {"API.Example.COM", "443", true}, {"api.example.com.", "443", true},
		{"example.com", "443", false}, {"x.api.example.com", "443", false}, {"evilapi.example.com", "443", false}, {"api.example.com.evil.org", "443", false},
		{"a.corp.example", "443", true}, {"a.b.corp.example", "80", true}, {"A.CORP.EXAMPLE.", "443", true}, {"corp.example", "443", false}, {"evilcorp.example", "443", false}, {"a.corp.example", "8443", false},
		{"localhost", "8080", true}, {"localhost", "80", false}, {"localhost", "443", false}, {"LOCALHOST", "8080", true},
		{"10.0.0.7", "80", true}, {"10.0.0.70", "80", false}, {"", "443", false}, {".", "443", false},
	} {
		if got := n.allows(tt.host, tt.port); got != tt.want {
			t.Errorf("%s:%s: %t", tt.host, tt.port, got)
		}
	}
	if (Network{}).allows("api.example.com", "443") {
		t.Error("nothing is declared, and a host is reached")
	}
}

// TestFound: paths are as the kernel knows them, and those that name nothing are left out.
func TestFound(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	all := []string{"", filepath.Join(dir, "missing"), link}
	p := Policy{Writable: all, ReadOnly: all, Hidden: all}.found()
	for _, got := range [][]string{p.Writable, p.ReadOnly, p.Hidden} {
		if !slices.Equal(got, []string{dir}) {
			t.Errorf("%q", got)
		}
	}
}
