package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// The bounds of one workspace, which is a copy of all files.
const (
	maxFiles = 400_000
	maxBytes = 16 << 30
)

// listFiles are the arguments of the command that names the files of a working tree: those
// in its index and those that git does not ignore.
var listFiles = []string{"ls-files", "-z", "--cached", "--others", "--exclude-standard"}

// files are those of a working tree that a workspace has.
type files struct {
	there []string // slash paths of files and links
	gone  []string // in the list, and no files of the tree any more
	left  []string // folders that are repositories of their own
}

// sortFiles looks which of the listed paths are there. A path through a link is not.
func sortFiles(top string, listed []byte, leftOut func(string) bool) (files, error) {
	root, err := os.OpenRoot(top)
	if err != nil {
		return files{}, err
	}
	defer func() { _ = root.Close() }() // only read
	f, folders, size := files{}, folders{root: root, real: map[string]bool{".": true}}, int64(0)
	paths := strings.Split(string(bytes.TrimSuffix(listed, []byte{0})), "\x00")
	slices.Sort(paths) // a path with a conflict stands there three times
	for _, path := range slices.Compact(paths) {
		name := strings.TrimSuffix(path, "/")
		if name == "" || leftOut(name) {
			continue
		}
		info, err := folders.look(name)
		switch {
		case err != nil:
			return f, err
		case info == nil:
			f.gone = append(f.gone, name)
		case info.IsDir():
			f.gone, f.left = append(f.gone, name), append(f.left, name)
		case info.Mode().IsRegular(), info.Mode()&fs.ModeSymlink != 0:
			f.there = append(f.there, name)
			size += info.Size()
		default:
			f.gone = append(f.gone, name)
		}
	}
	switch {
	case len(f.there) > maxFiles:
		return f, tooLarge(fmt.Sprintf("it has %d files, and a workspace may have %d", len(f.there), maxFiles))
	case size > maxBytes:
		return f, tooLarge(fmt.Sprintf("its files are %d GiB, and those of a workspace may be %d", size>>30, maxBytes>>30))
	}
	return f, nil
}

// folders knows which folders of a tree are none but by a link.
type folders struct {
	root *os.Root
	real map[string]bool
}

// look is what stands at a path; nil where nothing does, or where a link is on the way.
func (f folders) look(path string) (fs.FileInfo, error) {
	for at := 0; ; {
		next := strings.IndexByte(path[at:], '/')
		if next < 0 {
			break
		}
		at += next
		dir := path[:at]
		is, known := f.real[dir]
		if !known {
			info, err := f.root.Lstat(filepath.FromSlash(dir))
			is = err == nil && info.IsDir()
			f.real[dir] = is
		}
		if !is {
			return nil, nil //nolint:nilnil // there is nothing
		}
		at++
	}
	info, err := f.root.Lstat(filepath.FromSlash(path))
	if isMissing(err) {
		return nil, nil //nolint:nilnil // there is nothing
	}
	return info, err
}

// never are files that no workspace has, wherever they stand: the state of threads, keys, and
// what another process is applying.
func never(path string) bool {
	names := protect.Split(path)
	return protect.InAI(names) && protect.ByName(names) == protect.Nothing ||
		slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, draftPrefix) })
}

// maxVanished bounds how often files are looked for anew because one was removed meanwhile.
const maxVanished = 10

// snapshot brings an index up to what lies in a working tree, and returns the tree object
// of it. List names what there may be.
func (g *git) snapshot(ctx context.Context, top, index string, listed []byte, leftOut func(string) bool) (tree string, f files, err error) {
	if f, err = sortFiles(top, listed, leftOut); err != nil {
		return "", f, err
	}
	for range maxVanished {
		if tree, err = g.treeOf(ctx, top, index, f); err == nil {
			return tree, f, nil
		}
		now, sortErr := sortFiles(top, listed, leftOut)
		if sortErr != nil || slices.Equal(now.there, f.there) {
			break
		}
		f = now // a file was removed between the look and git's
	}
	return "", f, err
}

// treeOf brings an index up to files that are there, and returns the tree object of it.
func (g *git) treeOf(ctx context.Context, top, index string, f files) (tree string, err error) {
	at := call{tree: top, index: index}
	if len(f.gone) > 0 {
		var removed bytes.Buffer
		for _, path := range f.gone {
			fmt.Fprintf(&removed, "0 %s\t%s\x00", strings.Repeat("0", 40), path)
		}
		at.stdin = removed.Bytes()
		if _, _, err := g.run(ctx, at, "update-index", "-z", "--index-info"); err != nil {
			return "", err
		}
	}
	at.stdin = []byte(strings.Join(append(slices.Clone(f.there), ""), "\x00"))
	if _, _, err := g.run(ctx, at, "update-index", "--add", "--replace", "-z", "--stdin"); err != nil {
		return "", unreadable(err)
	}
	at.stdin = nil
	return g.line(ctx, at, "write-tree")
}

// unreadable says which file kept a workspace from being made.
func unreadable(err error) error {
	if f, ok := err.(*tool.Fault); ok && strings.Contains(f.Message, "Permission denied") { //nolint:errorlint // it was made by gitFailed
		return f.WithHint("A file of the project cannot be read. Tell the person, who can have git ignore it.")
	}
	return err
}
