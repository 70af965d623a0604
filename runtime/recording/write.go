package recording

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

const manifestName = "manifest.json"

// Write writes the recording, signed with a key.
func (r *Recording) Write(to io.Writer, key *sign.Key) error {
	if err := r.fits(); err != nil {
		return err
	}
	m := r.Manifest
	m.Files = r.list()
	sealed, err := m.seal(key)
	if err != nil {
		return err
	}
	if len(sealed) > maxManifest {
		return fmt.Errorf("the manifest of the recording would be %d bytes, more than %d", len(sealed), maxManifest)
	}
	archive := zip.NewWriter(to)
	if err := add(archive, manifestName, sealed); err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := add(archive, f.Name, r.files[f.Name]); err != nil {
			return err
		}
	}
	return archive.Close()
}

// fits refuses what nobody could read.
func (r *Recording) fits() error {
	total := 0
	for name, data := range r.files {
		if total += len(data); len(data) > maxMember || total > maxContent {
			return fmt.Errorf("a recording holds %d MB, %d of one file, and %s does not fit", maxContent>>20, maxMember>>20, name)
		}
	}
	if len(r.files)+1 > maxMembers || len(r.Manifest.Threads) > maxThreads {
		return fmt.Errorf("a recording holds %d threads and %d files", maxThreads, maxMembers)
	}
	return nil
}

// list describes the files, sorted by name.
func (r *Recording) list() []File {
	files := make([]File, 0, len(r.files))
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		sum := sha256.Sum256(r.files[name])
		files = append(files, File{Name: name, Size: int64(len(r.files[name])), SHA256: hex.EncodeToString(sum[:]), Taken: r.taken[name]})
	}
	return files
}

// stamp is the time of all members, the first that the format knows: none of theirs.
func stamp() time.Time { return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC) }

func add(archive *zip.Writer, name string, data []byte) error {
	w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: stamp()})
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}
