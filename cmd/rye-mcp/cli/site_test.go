package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/projectname"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// sited is a project, its user and what an environment says about its store.
type sited struct {
	user, project string
	env           map[string]string
	flag          string
	stderr        bytes.Buffer
}

func newSited(t *testing.T, settings string) *sited {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &sited{user: filepath.Join(dir, "user"), project: filepath.Join(dir, "project"), env: map[string]string{}}
	s.write(t, s.user, settings)
	if err := os.MkdirAll(s.project, 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// write writes store.yaml of a space; an empty text is no file.
func (s *sited) write(t *testing.T, space, text string) {
	t.Helper()
	file := filepath.Join(space, ".ai", "config", filepath.FromSlash(config.StoreFile))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if text == "" {
		return
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// cloned gives the project a repository with an origin.
func (s *sited) cloned(t *testing.T, origin string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(s.project, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("[core]\n\tbare = false\n[remote \"origin\"]\n\turl = %s\n", origin)
	if err := os.WriteFile(filepath.Join(s.project, ".git", "config"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *sited) system() System {
	environ := make([]string, 0, len(s.env))
	for name, value := range s.env {
		environ = append(environ, name+"="+value)
	}
	sys := System{
		Environ: environ, Getenv: func(name string) string { return s.env[name] }, Stderr: &s.stderr,
		Now: time.Now, Hostname: func() (string, error) { return "laptop", nil },
	}.takingStore()
	sys.store.flag = s.flag
	return sys
}

func (s *sited) site(t *testing.T) (site, error) {
	t.Helper()
	return siteOf(t.Context(), s.system(), spacesOf(s.project, s.user))
}

func TestSiteOrder(t *testing.T) {
	t.Parallel()
	const settings, env, flag = "store: postgres://settings/db\n", "postgres://env/db", "postgres://flag/db"
	for name, c := range map[string]struct{ settings, env, flag, want, from string }{
		"nothing":                {"", "", "", "local", ""},
		"settings":               {settings, "", "", "postgres://settings/db", "/user/.ai/config/agent/store.yaml"},
		"environment first":      {settings, env, "", "postgres://env/db", "RYE_STORE"},
		"flag before that":       {settings, env, flag, "postgres://flag/db", "--store"},
		"back by environment":    {settings, "local", "", "local", "RYE_STORE"},
		"back by flag":           {settings, env, "local", "local", "--store"},
		"environment alone":      {"", env, "", "postgres://env/db", "RYE_STORE"},
		"settings are not asked": {"store: [broken]\n", "local", "", "local", "RYE_STORE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSited(t, c.settings)
			s.env[storeurl.Variable], s.flag = c.env, c.flag
			got, err := s.site(t)
			if err != nil || got.url.String() != c.want || !strings.HasSuffix(got.from, c.from) || got.shared() == (c.want == "local") {
				t.Errorf("%s by %s, %v; want %s by %s", got.url, got.from, err, c.want, c.from)
			}
		})
	}
}

func TestSiteBad(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ env, flag, want, try string }{
		"variable":        {"mysql://me:hush@db/x", "", "RYE_STORE: the address of a store has a scheme", "postgres://"},
		"mirror":          {"langgraph+http://hush:2024", "", "mirrored", "postgres://"},
		"flag":            {"", "postgres://me:hu/sh@db/x", "--store: the address", "postgres://"},
		"password of all": {"", "postgres://me:hush@db/x", "read by everybody", "~/.pgpass"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSited(t, "")
			s.env[storeurl.Variable], s.flag = c.env, c.flag
			_, err := s.site(t)
			usage, is := errors.AsType[*usageError](err)
			if !is || !strings.Contains(usage.message, c.want) || !strings.Contains(usage.try, c.try) || strings.Contains(usage.message+usage.try, "hush") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestSitePassword(t *testing.T) {
	t.Parallel()
	command := func(args string) string {
		return "store: {url: postgres://me@db/rye, password_command: [sh, -c, '" + args + "']}\n"
	}
	s := newSited(t, command("echo from-a-command"))
	s.env["PATH"] = os.Getenv("PATH")
	got, err := s.site(t)
	if err != nil || got.url.Secret() != "postgres://me@db/rye?password=from-a-command" {
		t.Fatalf("%s, %v", got.url.Secret(), err)
	}
	s.env[storeurl.Variable] = "postgres://other/rye"
	if got, err = s.site(t); err != nil || got.url.HasPassword() {
		t.Errorf("another server gets the password of the settings: %s, %v", got.url, err)
	}
	failing := newSited(t, command("echo hush >&2; exit 3"))
	failing.env["PATH"] = os.Getenv("PATH")
	_, err = failing.site(t)
	fault := tool.AsFault(err)
	if err == nil || fault.Code != tool.CodeInvalidConfig || !strings.Contains(fault.Message, "store.password_command (sh) ended with exit code 3") || strings.Contains(fault.Message+fault.Try, "hush") {
		t.Errorf("%v, %+v", err, fault)
	}
}

func TestSiteName(t *testing.T) {
	t.Parallel()
	const url = "store: postgres://db/rye\n"
	t.Run("a stranger's clone", func(t *testing.T) {
		t.Parallel()
		s := newSited(t, url)
		s.cloned(t, "git@github.com:team/app.git")
		s.write(t, s.project, "store: {project: team/app, url: postgres://evil/x}\n")
		got, err := s.site(t)
		if err != nil || !strings.HasPrefix(got.project, projectname.Folder) || got.url.String() != "postgres://db/rye" {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("origin of a trusted one", func(t *testing.T) {
		t.Parallel()
		s := newSited(t, url)
		s.cloned(t, "git@github.com:team/app.git")
		trusttest.AcceptSettings(t, spacesOf(s.project, s.user))
		if got, err := s.site(t); err != nil || got.project != "github.com/team/app" {
			t.Errorf("%+v, %v", got, err)
		}
		s.project = filepath.Join(s.project, "services", "a")
		if err := os.MkdirAll(s.project, 0o700); err != nil {
			t.Fatal(err)
		}
		trusttest.AcceptSettings(t, spacesOf(s.project, s.user))
		if got, err := s.site(t); err != nil || got.project != "github.com/team/app/services/a" {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("set by a trusted one", func(t *testing.T) {
		t.Parallel()
		s := newSited(t, url)
		s.cloned(t, "git@github.com:team/app.git")
		s.write(t, s.project, "store: {project: team/app, url: postgres://evil/x, fallback: local}\n")
		trusttest.AcceptSettings(t, spacesOf(s.project, s.user))
		got, err := s.site(t)
		if err != nil || got.project != "team/app" || got.url.String() != "postgres://db/rye" || got.fallback {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		s := newSited(t, url)
		trusttest.AcceptSettings(t, spacesOf(s.project, s.user))
		_, err := s.site(t)
		if fault := tool.AsFault(err); !errors.Is(err, projectname.ErrNone) || !strings.Contains(fault.Try, "config set store store.project") {
			t.Errorf("%v", err)
		}
	})
}

// TestAttackStoreOfATool: a tool of a thread starts rye-mcp with a database of its own in the environment. Below a thread only the user's settings say where threads are kept.
func TestAttackStoreOfATool(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{"local": "", "the user's": "store: postgres://mine/rye\n"} {
		s := newSited(t, settings)
		s.env[storeurl.Variable], s.flag = "postgres://evil/x", "postgres://evil/y"
		s.env["RYE_PARENT_THREAD_ID"] = "work-1"
		got, err := s.site(t)
		if err != nil || strings.Contains(got.url.Secret(), "evil") {
			t.Errorf("%s: %s, %v", name, got.url, err)
		}
	}
}

// TestHandedSite: the process of a thread goes by what its starter has handed over, and by
// nothing else.
func TestHandedSite(t *testing.T) {
	t.Parallel()
	s := newSited(t, "store: postgres://settings/db\n")
	s.env[storeurl.Variable] = "postgres://env/db"
	u, err := storeurl.Parse("postgres://me:hush@db/rye")
	if err != nil {
		t.Fatal(err)
	}
	entry, err := site{url: u, project: "team/app", key: "/key"}.handOver().Entry()
	if err != nil {
		t.Fatal(err)
	}
	handed := s.system().handedStore(spawn.Inherited([]string{"run:x", entry}), s.project)
	got, err := siteOf(t.Context(), handed, spacesOf(s.project, s.user))
	if err != nil || got.url.Secret() != u.Secret() || got.project != "team/app" || got.key != "/key" {
		t.Errorf("%+v, %v", got, err)
	}
	local := s.system().handedStore(spawn.Inherited([]string{"run:x"}), s.project)
	if got, err := siteOf(t.Context(), local, spacesOf(s.project, s.user)); err != nil || got.shared() {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestStoreIsNoVariable: the environment that this program knows, and hands on, has no
// address of a store.
func TestStoreIsNoVariable(t *testing.T) {
	t.Parallel()
	s := newSited(t, "")
	s.env[storeurl.Variable], s.env["HOME"] = "postgres://db/hush", "/home/me"
	sys := s.system()
	if got := sys.Getenv(storeurl.Variable) + strings.Join(sys.Environ, " ") + fmt.Sprint(outerOf(sys)); strings.Contains(got, "hush") || !strings.Contains(got, "HOME=/home/me") {
		t.Errorf("%s", got)
	}
}
