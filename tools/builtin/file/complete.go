package file

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxCompleted is how many entries of a folder are looked at to complete a path.
const maxCompleted = 10_000

// Complete lists files and folders of a project that tools may read and whose path
// begins with prefix, in order and at most so many. Folders end with a slash. Hidden
// ones are left out unless the prefix names them. User is the folder of the user's
// .ai, or empty. Where nothing can be listed there is nothing to offer.
func Complete(ctx context.Context, project, user, prefix string, most int) ([]string, error) {
	p, err := (&space{user: user}).open(tool.Env{Project: project})
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	folder, name := path.Split(filepath.ToSlash(prefix))
	rel, err := p.locate(cmp.Or(folder, "."))
	if err != nil {
		return nil, nil // it lies outside
	}
	pl, err := p.find(rel, protect.Reading)
	if err != nil {
		return nil, nil // it is protected
	}
	defer pl.Close()
	if !pl.isDir() {
		return nil, nil
	}
	return p.beginning(ctx, pl, folder, name, most)
}

// beginning lists what of a folder begins with name, as paths below asked.
func (p *project) beginning(ctx context.Context, pl *place, asked, name string, most int) ([]string, error) {
	f, err := pl.in().Open(".")
	if err != nil {
		return nil, explain(pl.asked, err)
	}
	defer func() { _ = f.Close() }()
	found, err := f.ReadDir(maxCompleted)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, explain(pl.asked, err)
	}
	slices.SortFunc(found, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var paths []string
	for _, d := range found {
		if len(paths) == most {
			break
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !strings.HasPrefix(d.Name(), name) || name == "" && strings.HasPrefix(d.Name(), ".") || !printable(d.Name()) {
			continue
		}
		info, err := pl.in().Lstat(d.Name())
		if err != nil || p.accessTo(filepath.Join(pl.rel(), d.Name()), info) == protect.Nothing {
			continue // it has gone, or is protected
		}
		if d.IsDir() {
			paths = append(paths, asked+d.Name()+"/")
		} else {
			paths = append(paths, asked+d.Name())
		}
	}
	return paths, nil
}

// printable tells whether a name can stand in a menu.
func printable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}
