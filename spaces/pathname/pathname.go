// Package pathname tells whether paths lie in folders.
//
// [Inside] goes by the names, which is right for paths that were made from one another.
// [Holds] asks the file system, too: one folder has several names where a link leads to it,
// and where upper and lower case are the same. Decisions about trust ask [Holds].
package pathname

import (
	"os"
	"path/filepath"
)

// Inside is path relative to a folder, by the names alone, and whether it is the folder (".")
// or lies in it. Both are absolute, or relative to the same folder.
func Inside(dir, path string) (rel string, is bool) {
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return rel, true
}

// Has reports whether path is a folder or lies in it, by the names alone.
func Has(dir, path string) bool {
	_, is := Inside(dir, path)
	return is
}

// Holds reports whether path is a folder or lies in it, by its name, behind its links, or
// under another name of the folder. A part of path need not exist. An empty path is nowhere.
func Holds(dir, path string) bool {
	if dir == "" || path == "" {
		return false
	}
	if Has(dir, path) {
		return true
	}
	want, err := os.Stat(dir)
	return err == nil && (leadsTo(want, path) || leadsTo(want, behind(path)))
}

// leadsTo reports whether path, or a folder on the way to it, is the file want.
func leadsTo(want os.FileInfo, path string) bool {
	for up := path; ; up = filepath.Dir(up) {
		if info, err := os.Stat(up); err == nil && os.SameFile(info, want) {
			return true
		}
		if up == filepath.Dir(up) {
			return false
		}
	}
}

// behind is the part of path that exists, without links.
func behind(path string) string {
	for up := path; ; up = filepath.Dir(up) {
		if real, err := filepath.EvalSymlinks(up); err == nil || up == filepath.Dir(up) {
			return real
		}
	}
}

// Real is path as an absolute one without links, or with them where it leads nowhere.
func Real(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}
