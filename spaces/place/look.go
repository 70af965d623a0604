package place

import (
	"os"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Look is what can be seen of a user's state without reading anything: its folder,
// the document in it, and the key. As long as it is the same the state is, too.
type Look struct{ folder, document, key os.FileInfo }

// Look looks at state that was found. Files that are not there are missing in the
// look.
func (f Finder) Look(s State) Look {
	at := func(path string) os.FileInfo {
		info, err := os.Lstat(path)
		if err != nil {
			return nil
		}
		return info
	}
	return Look{at(s.Dir), at(filepath.Join(s.Dir, markerName)), at(sign.StateKeyFile(f.User))}
}

// Same tells that two looks saw the same. The content of the folder changes all the
// time.
func (l Look) Same(other Look) bool {
	return isFile(l.folder, other.folder) && isUnchanged(l.document, other.document) && isUnchanged(l.key, other.key)
}

func isFile(a, b os.FileInfo) bool { return a != nil && b != nil && os.SameFile(a, b) }

func isUnchanged(a, b os.FileInfo) bool {
	return isFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// IsOf reports whether state is that of the same place under the same key.
func (s State) IsOf(other State) bool {
	return s.Seal != nil && other.Seal != nil && s.Dir == other.Dir &&
		s.Seal.Place() == other.Seal.Place() && s.Seal.Fingerprint() == other.Seal.Fingerprint()
}
