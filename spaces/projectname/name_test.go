package projectname_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/projectname"
)

func TestOf(t *testing.T) {
	t.Parallel()
	const origin = "git@github.com:Team/app.git"
	for name, c := range map[string]struct {
		facts projectname.Facts
		want  string
		err   error
	}{
		"origin":             {projectname.Facts{Trusted: true, Origin: origin}, "github.com/Team/app", nil},
		"set":                {projectname.Facts{Trusted: true, Set: "team/app", Origin: origin}, "team/app", nil},
		"a part of it":       {projectname.Facts{Trusted: true, Origin: origin, Below: "services/a"}, "github.com/Team/app/services/a", nil},
		"an odd part of it":  {projectname.Facts{Trusted: true, Origin: origin, Below: "my services"}, "", projectname.ErrBad},
		"neither":            {projectname.Facts{Trusted: true}, "", projectname.ErrNone},
		"a folder as origin": {projectname.Facts{Trusted: true, Origin: "/srv/git/app.git"}, "", projectname.ErrNone},
		"another's folder":   {projectname.Facts{Trusted: true, Set: "folder/0123"}, "", projectname.ErrBad},
		"folder alone":       {projectname.Facts{Trusted: true, Set: "folder"}, "", projectname.ErrBad},
		"up":                 {projectname.Facts{Trusted: true, Set: "a/../b"}, "", projectname.ErrBad},
		"sign":               {projectname.Facts{Trusted: true, Set: "a\u202eb"}, "", projectname.ErrBad},
		"empty part":         {projectname.Facts{Trusted: true, Set: "a//b"}, "", projectname.ErrBad},
		"long":               {projectname.Facts{Trusted: true, Set: strings.Repeat("a", 201)}, "", projectname.ErrBad},
	} {
		got, err := projectname.Of(c.facts)
		if !errors.Is(err, c.err) || err == nil && got != c.want {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, err, c.want, c.err)
		}
	}
}

// TestAttackJoinProject: a clone that nobody has trusted says that it is a team's project, by its settings and by its origin. It keeps a name of its own, which no other folder has.
func TestAttackJoinProject(t *testing.T) {
	t.Parallel()
	facts := projectname.Facts{Set: "team/app", Origin: "git@github.com:team/app.git", Host: "laptop", Path: "/home/me/clone"}
	mine, err := projectname.Of(facts)
	if err != nil || !strings.HasPrefix(mine, projectname.Folder) {
		t.Fatalf("%q, %v", mine, err)
	}
	for _, other := range []projectname.Facts{{Host: "laptop", Path: "/home/me/clone2"}, {Host: "desktop", Path: "/home/me/clone"}, {Host: "laptop/home", Path: "/me/clone"}} {
		if name, err := projectname.Of(other); err != nil || name == mine {
			t.Errorf("%+v is %q too, %v", other, name, err)
		}
	}
	if err := projectname.Check(mine); err == nil {
		t.Error("a trusted folder could choose the name")
	}
}

func TestFromRemote(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"git@github.com:Team/app.git":                 "github.com/Team/app",
		"github.com:Team/app":                         "github.com/Team/app",
		"https://github.com/Team/app.git":             "github.com/Team/app",
		"https://user:token@GitHub.com:443/Team/app/": "github.com/Team/app",
		"ssh://git@github.com:22/Team/app.git":        "github.com/Team/app",
		"ssh://git@git.example:2222/~me/app":          "git.example:2222/~me/app",
		"git://git.example./a/b/c.git":                "git.example/a/b/c",
		"https://git.example/a.git?x=y#z":             "git.example/a",
		"":                                            "",
		"/srv/git/app.git":                            "",
		"../app":                                      "",
		"file:///srv/git/app.git":                     "",
		`C:\git\app`:                                  "",
		"https://":                                    "",
		"https://host/":                               "",
		"folder:0123":                                 "",
		"https://folder/0123":                         "",
		"host:a/../../b":                              "",
		"host:a b":                                    "",
	} {
		if got := projectname.FromRemote(remote); got != want {
			t.Errorf("%s: %q, want %q", remote, got, want)
		}
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@h:a/b.git\n\tfetch = +x\n": "git@h:a/b.git",
		"[remote \"other\"]\n url = x:y\n[remote \"origin\"]\nURL=h:a # mine\n":              "h:a",
		"[remote \"origin\"] url = \"h:a;b\" ; c\n":                                          "h:a;b",
		"[remote \"origin\"]\r\n\turl = h:a\r\n":                                             "h:a",
		"[remote \"origin\"]\n pushurl = h:b\n":                                              "",
		"[branch \"origin\"]\n url = h:b\n":                                                  "",
		"[include]\n path = /evil\n[url \"x\"]\n insteadOf = h:\n":                           "",
		"[remote \"origin\"]\n url = h:a\\\n":                                                "",
		"[remote \"origin\"\n url = h:a\n":                                                   "",
		"":                                                                                   "",
	} {
		if got := projectname.Origin(config); got != want {
			t.Errorf("%q: %q, want %q", config, got, want)
		}
	}
}

// FuzzName: whatever a repository says, a name is one that can be used, and never that of
// a folder without one.
func FuzzName(f *testing.F) {
	f.Add("[remote \"origin\"]\nurl = git@h:a/b.git\n", "")
	f.Add("[remote \"origin\"]\nurl = https://folder/1\n", "team/app")
	f.Fuzz(func(t *testing.T, config, set string) {
		name, err := projectname.Of(projectname.Facts{Trusted: true, Set: set, Origin: projectname.Origin(config)})
		if err == nil && (projectname.Check(name) != nil || strings.HasPrefix(name, projectname.Folder)) {
			t.Fatalf("%q", name)
		}
		if got, err := projectname.Of(projectname.Facts{Set: set, Origin: config, Path: config}); err != nil || !strings.HasPrefix(got, projectname.Folder) {
			t.Fatalf("%q, %v", got, err)
		}
	})
}
