package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// seen is a file as a look at its folder shows it, without its content.
type seen struct {
	space item.Space
	path  string // below the directory of the space
	exec  bool
	size  int64
	state state
}

// TooLargeError says that there are more items than a snapshot has room for.
type TooLargeError struct {
	Files int
	Bytes int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the items of this project and its user are too many for a snapshot: %d files of %d bytes, and there is room for %d of %d",
		e.Files, e.Bytes, MaxFiles, int64(MaxBytes))
}

// look lists the files of the spaces, sorted, and reads none of them. Links are followed
// within the folder of a kind, as they are when an item is found, but no folder is entered
// through one. Hidden files and folders are left out, those that package managers fill, the
// records of threads, files of more than [MaxFileBytes], and those whose path would mean
// something else on another machine.
func look(ctx context.Context, roots resolve.Roots) ([]seen, error) {
	var l looking
	for _, s := range []struct {
		of  item.Space
		dir string
	}{{item.Project, roots.Project}, {item.User, roots.User}} {
		if err := resolve.EachFolder(s.dir, s.of, func(folder string, root *os.Root) error { return l.folder(ctx, s.of, folder, root) }); err != nil {
			return nil, fmt.Errorf("look at the items of the %s space: %w", s.of, err)
		}
	}
	if len(l.files) > MaxFiles || l.bytes > MaxBytes {
		return nil, &TooLargeError{len(l.files), l.bytes}
	}
	slices.SortFunc(l.files, func(a, b seen) int {
		return compareFiles(File{Space: a.space, Path: a.path}, File{Space: b.space, Path: b.path})
	})
	return l.files, nil
}

type looking struct {
	files   []seen
	bytes   int64
	folders []fs.FileInfo // that were looked at
}

// folder lists the files of one of [resolve.Folders]. One that was looked at as that of the
// project, because somebody works at home, is not the user's too.
func (l *looking) folder(ctx context.Context, of item.Space, folder string, root *os.Root) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if slices.ContainsFunc(l.folders, func(other fs.FileInfo) bool { return os.SameFile(other, info) }) {
		return nil
	}
	l.folders = append(l.folders, info)
	return l.below(ctx, of, folder, root, ".")
}

func (l *looking) below(ctx context.Context, of item.Space, folder string, root *os.Root, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if strings.Count(dir, "/") >= maxPathLevels {
		return nil
	}
	opened, err := root.Open(dir + "/.") // so what was a folder is one
	if err != nil {
		return ignored(err)
	}
	entries, err := opened.ReadDir(-1)
	if err := errors.Join(err, opened.Close()); err != nil {
		return ignored(err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		whole := path.Join(folder, name)
		switch {
		case !resolve.IsPart(folder, e.Name(), e.IsDir()) || whole == recordsFolder:
		case protect.ByName(protect.Split(whole)) != protect.Writing || unfit(whole) != "":
		case e.IsDir():
			err = l.below(ctx, of, folder, root, name)
		default:
			l.file(of, whole, root, name, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recordsFolder holds the records of threads, which are made while others run.
var recordsFolder = path.Join(".ai", item.Knowledge.Dir(), item.ThreadRecords)

// ignored is the error of a folder that cannot be read, as long as items in it cannot be
// found either.
func ignored(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.As(err, new(*fs.PathError)) {
		return nil
	}
	return err
}

// file notes a regular file. A thread can use no file that cannot be looked at, so that the
// snapshot leaves it out.
func (l *looking) file(of item.Space, whole string, root *os.Root, name string, e fs.DirEntry) {
	if !e.Type().IsRegular() && e.Type()&fs.ModeSymlink == 0 {
		return
	}
	info, err := e.Info()
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		info, err = root.Stat(name)
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > MaxFileBytes {
		return
	}
	l.bytes += info.Size()
	l.files = append(l.files, seen{of, whole, isExec(info), info.Size(), stateOf(info)})
}

// isExec reports whether its owner may run a file: the one bit of the mode that matters.
func isExec(info fs.FileInfo) bool { return info.Mode().Perm()&0o100 != 0 }
