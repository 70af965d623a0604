package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// Bounds of a snapshot.
const (
	MaxFiles      = 20_000
	MaxFileBytes  = 16 << 20  // of one file; larger ones are left out
	MaxBytes      = 256 << 20 // of all files together
	maxManifest   = 16 << 20  // bytes of a manifest
	maxPath       = 1024      // bytes
	maxPathLevels = 32
)

// manifestType keeps any other signed document from being taken for a manifest.
const manifestType = "rye-snapshot"

// manifestVersion is the version of the form that is written here.
const manifestVersion = 1

// Manifest says which files there were.
type Manifest struct {
	Version int     `json:"version"`
	Type    string  `json:"type"`
	Place   string  `json:"place"` // of the threads that work by it
	Program Program `json:"program"`
	Files   []File  `json:"files"` // sorted by space and path
}

// Program says by which one a snapshot was made, and so what the system space was.
type Program struct {
	Version string `json:"version"`
	System  Hash   `json:"system"` // of the list of the files that are built in
}

// File is a file of the project or of the user.
type File struct {
	Space item.Space `json:"space"` // item.Project or item.User
	Path  string     `json:"path"`  // below the directory of the space, with slashes: ".ai/tools/a.py"
	Exec  bool       `json:"exec,omitempty"`
	Size  int64      `json:"size"`
	Hash  Hash       `json:"sha256"`
}

// ManifestError says what is wrong with a manifest. It is [ErrUnusable].
type ManifestError struct {
	Hash Hash // empty: it has no name yet
	Why  string
	Err  error // may be nil
}

func (e *ManifestError) Error() string {
	text := "the snapshot"
	if e.Hash != "" {
		text += " " + e.Hash.Short()
	}
	text += " cannot be used: " + e.Why
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *ManifestError) Unwrap() error { return e.Err }

// Is reports that the snapshot cannot be used.
func (e *ManifestError) Is(target error) bool { return target == ErrUnusable }

// Encode signs a manifest. The name of the snapshot is the hash of the result, and equal
// files at one place by one program have one name.
func (m Manifest) Encode(seal *place.Seal) (data []byte, name Hash, err error) {
	if seal == nil {
		return nil, "", place.ErrNoState
	}
	m.Version, m.Type, m.Place = manifestVersion, manifestType, seal.Place()
	m.Files = slices.Clone(m.Files)
	slices.SortFunc(m.Files, compareFiles)
	if err := m.Check(); err != nil {
		return nil, "", err
	}
	data, err = seal.Encode(m)
	if err == nil && len(data) > maxManifest {
		err = &ManifestError{Why: fmt.Sprintf("its manifest has more than %d bytes", maxManifest)}
	}
	return data, HashOf(data), err
}

// Open reads the manifest of a snapshot, which must be signed by a key that the seal
// accepts and be of its place. Errors: [*MissingError], [*AlteredError], [*ManifestError],
// all of which are [ErrUnusable], and those of the store.
func Open(ctx context.Context, from Blobs, seal *place.Seal, name Hash) (*Manifest, error) {
	data, err := ReadAll(ctx, from, name, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := Decode(data, seal)
	if broken, ok := errors.AsType[*ManifestError](err); ok {
		broken.Hash = name
	}
	return m, err
}

// Decode reads a manifest as [Open] does. Nothing of it is believed before its signature is
// verified.
func Decode(data []byte, seal *place.Seal) (*Manifest, error) {
	var m Manifest
	at, err := seal.Open(data, &m)
	switch {
	case errors.Is(err, place.ErrNoState):
		return nil, err
	case err != nil:
		return nil, &ManifestError{Why: "nobody whose word counts here has signed it", Err: err}
	case m.Type != manifestType || m.Place != at:
		return nil, &ManifestError{Why: "what is signed is no snapshot of this place"}
	case m.Version != manifestVersion:
		return nil, &ManifestError{Why: fmt.Sprintf("its version is %d, and this program knows %d", m.Version, manifestVersion)}
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	return &m, nil
}

func compareFiles(a, b File) int {
	return cmp.Or(cmp.Compare(a.Space, b.Space), cmp.Compare(a.Path, b.Path))
}

// Check refuses a manifest whose files could not be laid out: a signature says who has
// written it, and not that it is sound.
func (m Manifest) Check() error {
	if len(m.Files) > MaxFiles {
		return &ManifestError{Why: fmt.Sprintf("it has more than %d files", MaxFiles)}
	}
	folders := resolve.Folders()
	var bytes int64
	taken := make(map[string]string, 2*len(m.Files)) // by space and folded path: the path
	for i, f := range m.Files {
		if err := f.check(folders); err != nil {
			return err
		}
		if bytes += f.Size; bytes > MaxBytes {
			return &ManifestError{Why: fmt.Sprintf("its files have more than %d bytes", MaxBytes)}
		}
		if i > 0 && compareFiles(m.Files[i-1], f) >= 0 {
			return &ManifestError{Why: fmt.Sprintf("%s stands twice in it, or out of order", item.Shown(f.Path))}
		}
		if err := claim(taken, f); err != nil {
			return err
		}
	}
	return nil
}

// claim refuses a file that would be another one, or in another one, on a file system that
// knows no case. Folders may differ in case: there they become one.
func claim(taken map[string]string, f File) error {
	const isFolder = "\x00"
	key := string(f.Space) + "/" + folded(f.Path)
	if other, there := taken[key]; there {
		if other == isFolder {
			return &ManifestError{Why: item.Shown(f.Path) + " is a file and a folder in it"}
		}
		return &ManifestError{Why: fmt.Sprintf("%s and %s are one file where names have no case", item.Shown(other), item.Shown(f.Path))}
	}
	taken[key] = f.Path
	for above := path.Dir(f.Path); above != "."; above = path.Dir(above) {
		key := string(f.Space) + "/" + folded(above)
		switch other, there := taken[key]; {
		case there && other == isFolder:
			return nil // and all above it are
		case there:
			return &ManifestError{Why: item.Shown(other) + " is a file and a folder in it"}
		}
		taken[key] = isFolder
	}
	return nil
}

// folded is a path without what some file systems take for no difference in case.
func folded(p string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, p)
}

// check refuses a file that could not be laid out below the folders of items.
func (f File) check(folders []string) error {
	switch {
	case f.Space != item.Project && f.Space != item.User:
		return &ManifestError{Why: fmt.Sprintf("it has a file of the space %.40q", f.Space)}
	case f.Size < 0 || f.Size > MaxFileBytes:
		return &ManifestError{Why: fmt.Sprintf("%s has %d bytes; there can be %d", item.Shown(f.Path), f.Size, MaxFileBytes)}
	case !f.Hash.Valid():
		return &ManifestError{Why: item.Shown(f.Path) + " has no hash"}
	}
	if why := unfit(f.Path); why != "" {
		return &ManifestError{Why: fmt.Sprintf("its path %s %s", item.Shown(f.Path), why)}
	}
	if !slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(f.Path, folder+"/") }) {
		return &ManifestError{Why: item.Shown(f.Path) + " lies where no items are"}
	}
	return nil
}

// unfit says why a path cannot be laid out on every machine; empty when it can.
func unfit(p string) string {
	switch {
	case len(p) > maxPath:
		return fmt.Sprintf("has more than %d bytes", maxPath)
	case !utf8.ValidString(p):
		return "is no UTF-8"
	case !fs.ValidPath(p) || p == ".":
		return "is not a clean one below a folder"
	case strings.Count(p, "/") >= maxPathLevels:
		return fmt.Sprintf("has more than %d levels", maxPathLevels)
	case strings.ContainsAny(p, `\:`) || strings.ContainsFunc(p, unicode.IsControl):
		return "has characters that mean something else on other machines"
	}
	return ""
}

// Bytes is how many all files have.
func (m Manifest) Bytes() (sum int64) {
	for _, f := range m.Files {
		sum += f.Size
	}
	return sum
}
