package chain

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// onDisk is the file of an item, where a program can read it.
func (b *Builder) onDisk(e *Element) (string, error) {
	if e.Space != item.System {
		return e.Path, nil
	}
	dir, err := b.export(path.Dir(e.ID))
	return filepath.Join(dir, path.Base(e.ID)+e.Ext), err
}

// libOf is the folder that a runtime shares with the tools that it runs.
func (b *Builder) libOf(e *Element, s *anchorSpec) (string, error) {
	lib := path.Clean("/" + filepath.ToSlash(cmp.Or(s.Lib, "lib")))[1:]
	if e.Space != item.System {
		return filepath.Join(filepath.Dir(e.Path), filepath.FromSlash(lib)), nil
	}
	return b.export(path.Join(path.Dir(e.ID), lib))
}

// export puts a folder of tools of the system space on disk. Its name is made of what
// it holds, and what lies there is compared each time: a program that was allowed to
// write there must not change what the next one runs.
func (b *Builder) export(folder string) (string, error) {
	files, sum, err := b.exported(folder)
	switch {
	case err != nil, len(files) == 0:
		return "", err
	case b.World.Library == "":
		return "", fmt.Errorf("%w: there is no folder for caches (RYE_CACHE_DIR, or a home directory)", errNoLibrary)
	}
	dir := filepath.Join(b.World.Library, sum, filepath.FromSlash(folder))
	for name, content := range files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if there, err := regular.ReadFollowed(to, maxOwn); err == nil && bytes.Equal(there, content) {
			continue
		}
		err := os.MkdirAll(filepath.Dir(to), 0o700)
		if err == nil {
			err = renameio.WriteFile(to, content, 0o600)
		}
		if err != nil {
			return "", fmt.Errorf("%w: %w", errNoLibrary, err)
		}
	}
	return dir, nil
}

// exported are the files of a folder of tools of the system space, and their name
// together. A folder that is not there is empty.
func (b *Builder) exported(folder string) (files map[string][]byte, sum string, err error) {
	system := b.Resolver.Roots().System
	files, hash := map[string][]byte{}, sha256.New()
	root := path.Join(item.Tool.Dir(), folder)
	err = fs.WalkDir(system, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(system, name)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(hash, "%s\n%d\n%s", name, len(content), content) // a hash takes everything
		files[strings.TrimPrefix(name, root+"/")] = content
		return nil
	})
	if _, missing := fs.Stat(system, root); missing != nil {
		err = nil
	}
	return files, hex.EncodeToString(hash.Sum(nil))[:16], err
}
