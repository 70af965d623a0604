package recording

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Recording is what a file of recorded threads holds, all of it checked.
type Recording struct {
	Manifest Manifest
	// Signer is who signed it; nil for one that was not written yet.
	Signer *sign.PublicKey
	// Hash is that of the manifest, SHA-256 in hex, by which the recording is known.
	Hash string

	files map[string][]byte
	taken map[string]int // secrets, by name of file
}

// DamageError says why a file is no recording that can be used.
type DamageError struct{ Why string }

func (e *DamageError) Error() string { return "the recording is damaged: " + e.Why }

func damaged(format string, args ...any) error {
	return &DamageError{Why: fmt.Sprintf(format, args...)}
}

// Open reads a file and checks all of it: names, sizes, hashes, signature. Whether the
// signer is to be believed is the caller's to decide. Nothing of it is run, and nothing
// is written.
func Open(file string) (*Recording, error) {
	f, info, err := regular.Follow(file)
	if errors.Is(err, regular.ErrNot) {
		err = fmt.Errorf("%w: %s is not a regular file", ErrNoRecording, file)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return Read(f, info.Size())
}

// Read is [Open] of bytes.
func Read(from io.ReaderAt, size int64) (*Recording, error) {
	if size > maxArchive {
		return nil, damaged("it has %d bytes, and the most is %d", size, int64(maxArchive))
	}
	archive, err := zip.NewReader(from, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are looked at below
		return nil, fmt.Errorf("%w: %w", ErrNoRecording, err)
	}
	members, err := membersOf(archive)
	if err != nil {
		return nil, err
	}
	manifest, found := members[manifestName]
	if !found {
		return nil, fmt.Errorf("%w: it has no %s", ErrNoRecording, manifestName)
	}
	data, err := content(manifest, maxManifest)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	r := &Recording{Hash: hex.EncodeToString(sum[:]), files: map[string][]byte{}, taken: map[string]int{}}
	if r.Manifest, r.Signer, err = openManifest(data); err != nil {
		return nil, err
	}
	delete(members, manifestName)
	if err := r.take(members); err != nil {
		return nil, err
	}
	return r, r.check()
}

// membersOf looks at the directory of an archive before anything is unpacked.
func membersOf(archive *zip.Reader) (map[string]*zip.File, error) {
	if len(archive.File) > maxMembers {
		return nil, damaged("it has %d members, and the most is %d", len(archive.File), maxMembers)
	}
	members, folded := make(map[string]*zip.File, len(archive.File)), map[string]bool{}
	var total uint64
	for _, f := range archive.File {
		if why := badMember(f); why != "" {
			return nil, damaged("%.60q %s", f.Name, why)
		}
		if total += f.UncompressedSize64; total > maxContent {
			return nil, damaged("it unpacks to more than %d MB", maxContent>>20)
		}
		key := strings.ToLower(f.Name)
		if folded[key] {
			return nil, damaged("%q is there twice", f.Name)
		}
		folded[key], members[f.Name] = true, f
	}
	return members, nil
}

// badMember says what is wrong with a member by its header.
func badMember(f *zip.File) string {
	switch {
	case !validName(f.Name):
		return "is no name of a member"
	case !f.Mode().IsRegular():
		return "is not a regular file"
	case f.Flags&encrypted != 0:
		return "is encrypted"
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return fmt.Sprintf("is compressed by method %d", f.Method)
	case f.UncompressedSize64 > maxMember:
		return fmt.Sprintf("unpacks to more than %d MB", maxMember>>20)
	}
	return ""
}

// encrypted is that flag of a member, by APPNOTE 4.4.4.
const encrypted = 1

// validName takes the names that recordings are written with: letters, digits and a few
// signs, below no folder but those of the archive.
func validName(name string) bool {
	const signs = "/._-"
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(signs, r)
	}
	return len(name) <= maxName && fs.ValidPath(name) && name != "." && path.Clean(name) == name && !strings.ContainsFunc(name, other)
}

// content unpacks a member, which must be as long as its header says.
func content(f *zip.File, most uint64) ([]byte, error) {
	if f.UncompressedSize64 > most {
		return nil, damaged("%q unpacks to more than %d bytes", f.Name, most)
	}
	from, err := f.Open()
	if err != nil {
		return nil, damaged("%q: %v", f.Name, err)
	}
	defer func() { _ = from.Close() }()
	data, err := io.ReadAll(io.LimitReader(from, int64(f.UncompressedSize64)+1)) //nolint:gosec // bounded by maxMember
	if err != nil {
		return nil, damaged("%q: %v", f.Name, err)
	}
	if uint64(len(data)) != f.UncompressedSize64 {
		return nil, damaged("%q is longer than it says", f.Name)
	}
	return data, nil
}

// take unpacks what the manifest lists, each as it says, and refuses all else.
func (r *Recording) take(members map[string]*zip.File) error {
	for _, want := range r.Manifest.Files {
		member, found := members[want.Name]
		if !found {
			return damaged("%.60q of its manifest is not there, or is listed twice", want.Name)
		}
		delete(members, want.Name)
		if want.Size < 0 || uint64(want.Size) != member.UncompressedSize64 {
			return damaged("%q has %d bytes, and the manifest says %d", want.Name, member.UncompressedSize64, want.Size)
		}
		data, err := content(member, maxMember)
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want.SHA256 {
			return damaged("the content of %q is not what was signed", want.Name)
		}
		r.files[want.Name], r.taken[want.Name] = data, want.Taken
	}
	for name := range members {
		return damaged("%q is not in its manifest", name)
	}
	return nil
}
