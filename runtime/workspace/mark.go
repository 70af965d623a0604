package workspace

import (
	"crypto/sha1" //nolint:gosec // the hash of git's objects
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// kinds of what stands at a path.
const (
	kindNone  = ""
	kindFile  = "file"
	kindLink  = "link"
	kindOther = "other"
)

// mark tells what stands at a path from what else could.
type mark struct {
	kind         string
	exec         bool
	sha1, sha256 string // as git hashes it
}

func (m mark) hash(length int) string {
	if length == len(m.sha256) {
		return m.sha256
	}
	return m.sha1
}

// text is a mark as a journal has it.
func (m mark) text() string {
	switch {
	case m.kind == kindNone:
		return ""
	case m.exec:
		return "exec " + m.sha256
	}
	return m.kind + " " + m.sha256
}

// markOf is the mark of what was seen at a path; info is nil where there was nothing.
func markOf(root *os.Root, path string, info fs.FileInfo) (mark, error) {
	switch {
	case info == nil:
		return mark{}, nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(filepath.FromSlash(path))
		m := mark{kind: kindLink}
		m.sha1, m.sha256 = blobHashes([]byte(target))
		return m, err
	case !info.Mode().IsRegular():
		return mark{kind: kindOther}, nil
	}
	f, info, err := regular.OpenIn(root, filepath.FromSlash(path))
	if errors.Is(err, regular.ErrNot) { // by now
		return mark{kind: kindOther}, nil
	}
	if err != nil {
		return mark{}, err
	}
	defer func() { _ = f.Close() }() // only read
	m := mark{kind: kindFile, exec: info.Mode()&0o100 != 0}
	ones, twos := newBlob(info.Size())
	if _, err = io.Copy(io.MultiWriter(ones, twos), f); err != nil {
		return mark{}, err
	}
	m.sha1, m.sha256 = hex.EncodeToString(ones.Sum(nil)), hex.EncodeToString(twos.Sum(nil))
	return m, nil
}

// markAt is the mark of what stands at a path now.
func markAt(root *os.Root, path string) (mark, error) {
	info, err := root.Lstat(filepath.FromSlash(path))
	if isMissing(err) {
		return mark{}, nil
	}
	if err != nil {
		return mark{}, err
	}
	return markOf(root, path, info)
}

// newBlob are hashes of an object of git with so many bytes, in both of its formats.
func newBlob(size int64) (ones, twos hash.Hash) {
	ones, twos = sha1.New(), sha256.New() //nolint:gosec // see above
	for _, h := range []hash.Hash{ones, twos} {
		_, _ = fmt.Fprintf(h, "blob %d\x00", size) // a hash takes everything
	}
	return ones, twos
}

func blobHashes(data []byte) (one, two string) {
	ones, twos := newBlob(int64(len(data)))
	_, _ = ones.Write(data)
	_, _ = twos.Write(data)
	return hex.EncodeToString(ones.Sum(nil)), hex.EncodeToString(twos.Sum(nil))
}

// maxRead bounds a file that is read whole, in bytes: the index of a large repository is one.
const maxRead = 1 << 30

func readAll(root *os.Root, path string) ([]byte, error) {
	return regular.ReadIn(root, filepath.FromSlash(path), maxRead)
}
