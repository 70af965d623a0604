package fanout

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// maxHashed is how much of a file is read; one that is longer counts by its size and the
// time of its last change.
const maxHashed = 64 << 20

// fileHashes are the files that items name, each read once a call.
type fileHashes struct {
	project string
	known   map[string]string
}

// of hashes the files that inputs of the type file name, by input.
func (f *fileHashes) of(doc *item.DirectiveDoc, inputs map[string]any) map[string]string {
	hashes := map[string]string{}
	for _, in := range doc.Inputs {
		if path, ok := inputs[in.Name].(string); ok && in.File {
			hashes[in.Name] = f.file(path)
		}
	}
	return hashes
}

func (f *fileHashes) file(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.project, path)
	}
	if hash, ok := f.known[path]; ok {
		return hash
	}
	if f.known == nil {
		f.known = map[string]string{}
	}
	f.known[path] = hashFile(path)
	return f.known[path]
}

// hashFile is the hash of a file's content, or a word for what is no file: the thread
// says what is wrong with that.
func hashFile(path string) string {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "none"
	case info.IsDir():
		return "folder"
	case !info.Mode().IsRegular(): // a pipe would block
		return "no file"
	case info.Size() > maxHashed:
		return fmt.Sprintf("%d bytes, %d", info.Size(), info.ModTime().UnixNano())
	}
	file, _, err := regular.Follow(path)
	if errors.Is(err, regular.ErrNot) { // by now
		return "no file"
	}
	if err != nil {
		return "closed"
	}
	defer file.Close() //nolint:errcheck // only read
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(file, maxHashed)); err != nil {
		return "unreadable"
	}
	return hex.EncodeToString(hash.Sum(nil))
}
