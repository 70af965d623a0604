package process

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/pathname"
)

// pathVariable names the folders of programs.
const pathVariable = "PATH"

// Outside is an environment whose PATH has no folder of a project: the commands of threads
// write there, and what this program runs for itself is not confined. A project that
// contains the home is left in, for its commands write what every shell of the user runs.
func Outside(environ []string, project string) []string {
	if project == "" || pathname.Holds(project, lookup(environ, "HOME")) {
		return environ
	}
	environ = slices.Clone(environ)
	for i, entry := range environ {
		folders, is := strings.CutPrefix(entry, pathVariable+"=")
		if !is {
			continue
		}
		kept := slices.DeleteFunc(filepath.SplitList(folders), func(folder string) bool {
			return !filepath.IsAbs(folder) || pathname.Holds(project, folder)
		})
		environ[i] = pathVariable + "=" + strings.Join(kept, string(filepath.ListSeparator))
	}
	return environ
}

// Find is the file of a program: the name itself where it is a path, or what the PATH of an
// environment has under it. Relative folders are passed over: they are whatever lies where
// this program happens to run.
func Find(environ []string, name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return exec.LookPath(name)
	}
	for _, folder := range filepath.SplitList(lookup(environ, pathVariable)) {
		if !filepath.IsAbs(folder) {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// lookup is the value of a variable: of several entries the last one holds.
func lookup(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if value, is := strings.CutPrefix(entry, name+"="); is {
			return value
		}
	}
	return ""
}
