package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestOutside(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, project := filepath.Join(root, "home"), filepath.Join(root, "home", "project")
	if err := errors.Join(os.MkdirAll(filepath.Join(project, "bin"), 0o700), os.MkdirAll(filepath.Join(home, "bin"), 0o700),
		os.Symlink(filepath.Join(project, "bin"), filepath.Join(home, "linked")), os.Symlink(project, filepath.Join(root, "other")),
		os.Symlink("/usr/bin", filepath.Join(project, "system"))); err != nil {
		t.Fatal(err)
	}
	path := func(folders ...string) string { return "PATH=" + strings.Join(folders, ":") }
	for name, test := range map[string]struct {
		project    string
		path, want []string
	}{
		"outside":              {project, []string{"/usr/bin", home + "/bin", project + "-2/bin"}, []string{"/usr/bin", home + "/bin", project + "-2/bin"}},
		"below it":             {project, []string{project + "/.venv/bin", "/usr/bin", project + "/bin"}, []string{"/usr/bin"}},
		"the project itself":   {project, []string{project, "/usr/bin"}, []string{"/usr/bin"}},
		"by a link":            {project, []string{home + "/linked", "/usr/bin"}, []string{"/usr/bin"}},
		"by a link of its own": {project, []string{project + "/system", "/usr/bin"}, []string{"/usr/bin"}},
		"called by a link":     {filepath.Join(root, "other"), []string{project + "/bin", "/usr/bin"}, []string{"/usr/bin"}},
		"not there yet":        {project, []string{project + "/later/bin", "/usr/bin"}, []string{"/usr/bin"}},
		"not there, by a link": {project, []string{home + "/linked/later", "/usr/bin"}, []string{"/usr/bin"}},
		"relative":             {project, []string{".", "bin", "", "/usr/bin"}, []string{"/usr/bin"}},
		"the home":             {home, []string{home + "/bin", "/usr/bin"}, []string{home + "/bin", "/usr/bin"}},
		"around the home":      {root, []string{home + "/bin", "/usr/bin"}, []string{home + "/bin", "/usr/bin"}},
		"no project":           {"", []string{project + "/bin"}, []string{project + "/bin"}},
	} {
		environ := []string{"A=1", "HOME=" + home, path(test.path...)}
		got := Outside(environ, test.project)
		if want := []string{"A=1", "HOME=" + home, path(test.want...)}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if environ[2] != path(test.path...) {
			t.Errorf("%s: the given environment was changed", name)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(first, "not-executable"), filepath.Join(second, "tool"), filepath.Join(second, "not-executable")} {
		if err := os.WriteFile(file, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(filepath.Join(first, "not-executable"), 0o600), os.Mkdir(filepath.Join(first, "tool"), 0o700)); err != nil {
		t.Fatal(err)
	}
	environ := []string{"PATH=" + first, "PATH=.:" + first + ":" + second}
	for name, want := range map[string]string{
		"tool": filepath.Join(second, "tool"), "not-executable": filepath.Join(second, "not-executable"),
		filepath.Join(second, "tool"): filepath.Join(second, "tool"), "missing": "", "path_test.go": "", "": "",
	} {
		got, err := Find(environ, name)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	if _, err := Find(nil, "sh"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("without PATH: %v", err)
	}
}
