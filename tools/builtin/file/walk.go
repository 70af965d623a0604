package file

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
)

// walk calls visit for everything below base that is not a directory, in
// lexical order, with its path relative to the project. Version control data
// and the state of threads are left out unless base is inside of them.
// Symbolic links are not followed. It returns how many directories could not
// be read.
func (p *project) walk(ctx context.Context, base string, visit func(rel string, d fs.DirEntry) error) (unreadable int, err error) {
	base = filepath.ToSlash(base)
	err = fs.WalkDir(p.FS(), base, func(rel string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && rel == base:
			return explain(rel, err)
		case err != nil:
			unreadable++
			return nil //nolint:nilerr // counted; the rest of the tree is still of use
		case d.IsDir():
			if rel != base && hidden(rel) {
				return fs.SkipDir
			}
			return nil
		default:
			return visit(rel, d)
		}
	})
	return unreadable, err
}

// hidden folders hold what nobody looks for in a project: they are large and
// change while they are read.
func hidden(rel string) bool {
	return path.Base(rel) == ".git" || rel == ".ai/state"
}

// below is rel relative to base, both with slashes.
func below(base, rel string) string {
	if base == "." {
		return rel
	}
	if rel == base {
		return path.Base(rel)
	}
	return rel[len(base)+1:]
}
