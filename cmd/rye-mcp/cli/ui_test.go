package cli

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rs/zerolog"

	webpage "github.com/rye-mcp/rye-mcp/mcp/page"
)

// Projects are called by the last part of their path, with as many above it as tell them
// apart.
func TestNamedProjects(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ paths, names []string }{
		{nil, nil},
		{[]string{"/home/ada/web"}, []string{"web"}},
		{[]string{"/home/ada/web", "/home/ada/api"}, []string{"web", "api"}},
		{[]string{"/home/ada/web", "/home/bob/web", "/home/ada/api"}, []string{"ada/web", "bob/web", "api"}},
		{[]string{"/a/b/c", "/x/b/c", "/b/c"}, []string{"a/b/c", "x/b/c", "/b/c"}},
		{[]string{"/"}, []string{"/"}},
		{[]string{"/web", "/home/web"}, []string{"/web", "home/web"}},
	} {
		var names []string
		for i, p := range named(tt.paths) {
			names = append(names, p.Name)
			if p.Path != tt.paths[i] {
				t.Errorf("%v: %+v", tt.paths, p)
			}
		}
		if !slices.Equal(names, tt.names) {
			t.Errorf("%v are called %q, want %q", tt.paths, names, tt.names)
		}
	}
}

// The page shows the project that was chosen first, and those in the folders that clients
// may work in; others it does not open.
func TestShownProjects(t *testing.T) {
	t.Parallel()
	base := realDir(t)
	odd := makeDir(t, base, "[a-z]*")
	inside, bare := makeDir(t, odd, "inside"), makeDir(t, odd, "bare")
	beside := makeDir(t, base, "beside")
	for _, dir := range []string{inside, beside} {
		makeDir(t, dir, ".ai")
	}
	if err := os.Symlink(beside, filepath.Join(odd, "link")); err != nil {
		t.Fatal(err)
	}
	sys := testSystem(inside, map[string]string{"USER_SPACE": makeDir(t, base, "home")})
	ps, err := newProjects(sys, "", []string{odd}, zerolog.Nop(), noRoots)
	if err != nil {
		t.Fatal(err)
	}
	defer ps.close()
	if err := ps.chooseNow(); err != nil {
		t.Fatal(err)
	}
	shown := shownProjects{ps}
	list := shown.List()
	if len(list) == 0 || list[0] != (webpage.Named{Name: "inside", Path: inside}) || slices.ContainsFunc(list, func(n webpage.Named) bool { return n.Path == bare || n.Path == beside }) {
		t.Errorf("shown are %+v", list)
	}
	makeDir(t, makeDir(t, inside, "vendored"), ".ai")
	only := &projects{chosen: inside, allowed: []string{inside}}
	if list := (shownProjects{only}).List(); len(list) != 1 || list[0].Path != inside {
		t.Errorf("of one project shown are %+v", list)
	}
	for name, want := range map[string]string{"": inside, "inside": inside} {
		if p, err := shown.Open(t.Context(), name); err != nil || p.Path != want || p.Name != "inside" {
			t.Errorf("%q: %+v %v", name, p, err)
		}
	}
	for _, name := range []string{"bare", "beside", "link", "..", inside, "inside/"} {
		if p, err := shown.Open(t.Context(), name); err == nil {
			t.Errorf("%q was opened: %s", name, p.Path)
		}
	}
}

// The address of the page is one that a browser on this machine can use, or one by the
// name that others have for it.
func TestPageAddress(t *testing.T) {
	t.Parallel()
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 8765} }
	for _, tt := range []struct {
		ip    string
		hosts []string
		want  string
	}{
		{"127.0.0.1", nil, "http://127.0.0.1:8765/#token=X"},
		{"127.0.0.1", []string{"build.example.org"}, "http://127.0.0.1:8765/#token=X"},
		{"::1", nil, "http://[::1]:8765/#token=X"},
		{"0.0.0.0", nil, "http://127.0.0.1:8765/#token=X"},
		{"::", []string{"build.example.org"}, "http://build.example.org:8765/#token=X"},
		{"10.0.0.1", nil, "http://10.0.0.1:8765/#token=X"},
	} {
		if got := pageAddress(at(tt.ip), tt.hosts, "token", "X"); got != tt.want {
			t.Errorf("%s %v: %s, want %s", tt.ip, tt.hosts, got, tt.want)
		}
	}
}

// What opens the browser is the person's own choice, else the system's, and nothing where
// there is no screen.
func TestBrowserCommand(t *testing.T) {
	t.Parallel()
	for want, env := range map[string]map[string]string{
		"firefox": {"BROWSER": "firefox"}, "xdg-open": {"DISPLAY": ":0", "BROWSER": "a %s"}, "": {},
	} {
		got := browserCommand(testSystem(t.TempDir(), env))
		if got != want && got != "open" { // macOS has a screen
			t.Errorf("%v: %q, want %q", env, got, want)
		}
	}
}
