package file

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
)

// entry is one of a folder, with its name as it is shown.
type entry struct {
	fs.DirEntry
	shown string
}

// entries lists a folder, sorted by the names as they are shown: in the order of
// the real ones a secret in a name could be read off.
func (p *project) entries(dir *os.Root) ([]entry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	found, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	list := make([]entry, len(found))
	for i, d := range found {
		list[i] = entry{d, p.masked(d.Name())}
	}
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.shown, b.shown) })
	return list, nil
}

// walker goes through everything below a folder that is no directory, in lexical
// order. Protected files are left out, and symbolic links are not followed.
type walker struct {
	*project
	ctx     context.Context //nolint:containedctx // of one walk, which is one call
	all     bool            // also what git ignores
	skipped skipped
	visit   func(walked) error
}

// skipped counts what a walk has left out, beside protected files.
type skipped struct {
	unreadable int // folders that could not be read
	ignored    int // files and folders that .gitignore names
}

// walked is a file that a walk has come to.
type walked struct {
	dir   *os.Root // that it stands in
	rel   string   // relative to the project, with slashes; as it is
	shown string   // the same as it is shown
	real  string   // the same without links
	info  fs.FileInfo
}

// walk calls visit for what lies below a place, or for the file there; without all,
// files that git ignores are left out.
func (p *project) walk(ctx context.Context, pl *place, all bool, visit func(walked) error) (skipped, error) {
	w := &walker{project: p, ctx: ctx, visit: visit}
	asked := filepath.ToSlash(pl.asked)
	if !pl.isDir() {
		if pl.info == nil {
			return skipped{}, explain(pl.asked, fs.ErrNotExist)
		}
		return skipped{}, visit(walked{pl.in(), asked, p.masked(asked), pl.rel(), pl.info})
	}
	list, err := p.entries(pl.in())
	if err != nil {
		return skipped{}, explain(pl.asked, err)
	}
	w.all = all
	in := ignoring{}
	if !all {
		in = p.ignoring(pl)
	}
	err = w.each(pl.in(), asked, pl.rel(), list, in)
	return w.skipped, err
}

// each goes through the entries of a folder, which is shown by one path and
// judged by another.
func (w *walker) each(dir *os.Root, asked, real string, list []entry, in ignoring) error {
	if !w.all && slices.ContainsFunc(list, func(d entry) bool { return d.Name() == ignoreFile }) {
		in = in.with(dir, w.shownPath(real))
	}
	for _, d := range list {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		asked, real := path.Join(asked, d.Name()), filepath.Join(real, d.Name())
		info, err := dir.Lstat(d.Name())
		if err != nil || w.accessTo(real, info) == protect.Nothing {
			continue // it has gone, or is protected
		}
		if in.ignored(w.shownPath(real), d.IsDir()) {
			w.skipped.ignored++
			continue
		}
		if d.IsDir() {
			err = w.below(dir, d.Name(), asked, real, info, in)
		} else {
			err = w.visit(walked{dir, asked, w.masked(asked), real, info})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// below goes through a folder of dir.
func (w *walker) below(dir *os.Root, name, asked, real string, info fs.FileInfo, in ignoring) error {
	sub, err := openSame(dir, name, info)
	if err != nil {
		w.skipped.unreadable++
		return nil // counted; the rest of the tree is still of use
	}
	defer func() { _ = sub.Close() }()
	list, err := w.entries(sub)
	if err != nil {
		w.skipped.unreadable++
		return nil
	}
	return w.each(sub, asked, real, list, in)
}

// shownPath is a path relative to the project as patterns are held against it.
func (w *walker) shownPath(real string) string {
	if real == "." {
		return ""
	}
	return w.masked(filepath.ToSlash(real))
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
