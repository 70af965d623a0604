package file

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/tools/gitignore"
)

const (
	ignoreFile = ".gitignore"
	// maxAbove bounds the search for the repository that a project is part of.
	maxAbove = 64
)

// ignoring are the patterns that are about a folder. The zero value ignores nothing.
type ignoring struct {
	prefix string // of the project in its repository, with slashes
	chain  gitignore.Chain
}

// ignored reports whether git would leave a file or folder alone. It is judged by
// its name as it is shown: a pattern could spell out a secret.
func (in ignoring) ignored(shown string, dir bool) bool {
	return len(in.chain) > 0 && in.chain.Ignored(path.Join(in.prefix, shown), dir)
}

// with adds the patterns of a folder of the project, if it has some.
func (in ignoring) with(dir *os.Root, shown string) ignoring {
	f, _, err := regular.OpenIn(dir, ignoreFile)
	if err != nil {
		return in
	}
	defer func() { _ = f.Close() }() // only read
	if data, err := patternsOf(f); err == nil {
		in.chain = append(slices.Clip(in.chain), gitignore.Parse(path.Join(in.prefix, shown), data))
	}
	return in
}

// patternsOf reads an opened file of patterns.
func patternsOf(f *os.File) ([]byte, error) {
	return io.ReadAll(io.LimitReader(f, gitignore.MaxBytes))
}

// ignoring are the patterns about a place: of the repository, of the folders above
// the project in it, and of those on the way. A call that names an ignored folder
// means it: then only what it says itself counts.
func (p *project) ignoring(pl *place) ignoring {
	in := p.outerPatterns()
	real := ""
	for i, f := range pl.folders {
		if i > 0 {
			real = path.Join(real, f.name)
			if in.ignored(p.masked(real), true) {
				return ignoring{prefix: in.prefix}
			}
		}
		if i < len(pl.folders)-1 {
			in = in.with(f.root, p.masked(real))
		}
	}
	return in
}

// outerPatterns are those that stand outside the project, or in .git.
func (p *project) outerPatterns() ignoring {
	top := p.real
	for range maxAbove {
		info, err := os.Lstat(filepath.Join(top, ".git"))
		if err == nil {
			return p.patternsFrom(top, info.IsDir())
		}
		if top == filepath.Dir(top) {
			break
		}
		top = filepath.Dir(top)
	}
	return ignoring{} // no repository; the project's own files still count
}

func (p *project) patternsFrom(top string, hasDir bool) ignoring {
	in := ignoring{}
	rel, err := filepath.Rel(top, p.real)
	if err != nil {
		return in
	}
	if hasDir {
		in.add("", filepath.Join(top, ".git", "info", "exclude"))
	}
	if rel == "." {
		return in
	}
	in.prefix = filepath.ToSlash(rel)
	at := ""
	for _, name := range namesOf(rel) {
		in.add(filepath.ToSlash(at), filepath.Join(top, at, ignoreFile))
		at = filepath.Join(at, name)
	}
	return in
}

// add reads a file of patterns outside the project.
func (in *ignoring) add(base, name string) {
	f, _, err := regular.Open(name)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // only read
	if data, err := patternsOf(f); err == nil {
		in.chain = append(in.chain, gitignore.Parse(base, data))
	}
}
