// Package folder is a thread's folder on disk: where each file lies, and
// thread.json, which is read and written only here.
package folder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/renameio/v2"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Folders and files of state are for their owner alone.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// MaxMetaBytes bounds a thread.json; inputs are its only part
// of open size and are bounded to far less when a thread is started.
const MaxMetaBytes = 16 << 20

// Home is the folder of all threads of a project, with the seal of what they leave
// there.
type Home struct {
	Dir  string
	Seal *place.Seal // nil: no thread of the user has been there
}

// Of returns the folder of a thread, see [Of].
func (h Home) Of(id thread.ID) Folder { return Of(h.Dir, id) }

// Always is a home that does not change, for callers that have to ask.
func (h Home) Always() func() Home { return func() Home { return h } }

// Folder is the path of one thread's folder.
type Folder string

// Of returns the folder of a thread. The id must have come from the registry
// or from [thread.ParseID], so that it cannot leave the state folder.
func Of(stateDir string, id thread.ID) Folder {
	return Folder(filepath.Join(stateDir, filepath.FromSlash(string(id))))
}

// Make creates the folder.
func (f Folder) Make() error { return os.MkdirAll(string(f), dirMode) }

// Meta is the path of thread.json.
func (f Folder) Meta() string { return filepath.Join(string(f), "thread.json") }

// Transcript is the path of transcript.jsonl.
func (f Folder) Transcript() string { return filepath.Join(string(f), "transcript.jsonl") }

// Compressed is the path of a transcript that was compressed.
func (f Folder) Compressed() string { return f.Transcript() + ".zst" }

// Log is the path of the process's own log.
func (f Folder) Log() string { return filepath.Join(string(f), "thread.log") }

// Names of life locks: that of the run, or that of any run of an older version.
const (
	lockEnding = ".lock"
	formerLock = "thread"
)

// Lock is the path of the life lock of a run, which has its name, or of the thread where
// the run does not name it.
func (f Folder) Lock(run thread.Run) string {
	if !run.NamesLife() {
		run = formerLock
	}
	return filepath.Join(string(f), string(run)+lockEnding)
}

// Locks are the paths of all life locks that are there.
func (f Folder) Locks() ([]string, error) {
	entries, err := os.ReadDir(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var locks []string
	for _, e := range entries {
		if isLock(e) {
			locks = append(locks, filepath.Join(string(f), e.Name()))
		}
	}
	return locks, nil
}

// isLock reports whether an entry of a thread's folder is a life lock. There are others,
// such as that of a process that resumes the thread.
func isLock(e fs.DirEntry) bool {
	return isRunLock(e) || e.Name() == formerLock+lockEnding && e.Type().IsRegular()
}

// isRunLock reports whether an entry is a life lock with the name of a run. It goes with
// the life; the other one stays.
func isRunLock(e fs.DirEntry) bool {
	name, isLock := strings.CutSuffix(e.Name(), lockEnding)
	return isLock && e.Type().IsRegular() && thread.Run(name).NamesLife()
}

// Capabilities is the path of capabilities.md.
func (f Folder) Capabilities() string { return filepath.Join(string(f), "capabilities.md") }

// Artifacts is the folder of large tool results.
func (f Folder) Artifacts() string { return filepath.Join(string(f), "artifacts") }

// ReadMeta reads thread.json, which must carry a signature that the seal accepts,
// and name the place for which that counts.
func (f Folder) ReadMeta(seal *place.Seal) (thread.Meta, error) {
	var meta thread.Meta
	data, err := readBounded(f.Meta(), MaxMetaBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return meta, fmt.Errorf("%w: %s", thread.ErrNoMeta, f)
	}
	if err != nil {
		return meta, err
	}
	home, err := seal.Open(data, &meta)
	if err != nil {
		return thread.Meta{}, fmt.Errorf("read %s: %w", f.Meta(), err)
	}
	if meta.Place != home || meta.Type != typeAt(home) {
		return thread.Meta{}, fmt.Errorf("read %s: %w: it is not of a thread of this place", f.Meta(), sign.ErrBadSignature)
	}
	if meta.Version > thread.MetaVersion {
		return meta, fmt.Errorf("read %s: version %d is newer than this rye-mcp knows (%d)",
			f.Meta(), meta.Version, thread.MetaVersion)
	}
	return meta, nil
}

// PeekMeta reads thread.json as it is, for counts and logs. Nothing may rely on it.
func (f Folder) PeekMeta() (thread.Meta, error) {
	var meta thread.Meta
	data, err := readBounded(f.Meta(), MaxMetaBytes)
	if err != nil {
		return meta, err
	}
	return meta, json.Unmarshal(data, &meta)
}

// typeAt is what a thread.json says that it is. Those of before there were places
// do not say.
func typeAt(home string) string {
	if home == "" {
		return ""
	}
	return place.MetaType
}

// MetaSigner is the fingerprint of the key that has signed thread.json, as that
// says itself; empty when it carries no signature, or cannot be read.
func (f Folder) MetaSigner() string {
	data, err := readBounded(f.Meta(), MaxMetaBytes)
	if err != nil {
		return ""
	}
	return sign.SignerOf(data)
}

// WriteMeta replaces thread.json atomically, signed for the place of the seal.
func (f Folder) WriteMeta(meta thread.Meta, seal *place.Seal) error {
	data, err := EncodeMeta(meta, seal)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.Meta(), err)
	}
	return replaceFile(f.Meta(), data)
}

// EncodeMeta is what thread.json says, signed for the place of the seal.
func EncodeMeta(meta thread.Meta, seal *place.Seal) ([]byte, error) {
	if seal == nil {
		return nil, place.ErrNoState
	}
	meta.Version, meta.Type, meta.Place = thread.MetaVersion, place.MetaType, seal.Place()
	data, err := seal.Encode(meta)
	if err == nil && len(data) > MaxMetaBytes { // nobody could read it
		err = fmt.Errorf("it would be %d bytes, more than %d", len(data), MaxMetaBytes)
	}
	return data, err
}

// WriteCapabilities replaces capabilities.md. The caller has signed the text.
func (f Folder) WriteCapabilities(text []byte) error {
	return replaceFile(f.Capabilities(), text)
}

// MaxArtifacts bounds what is kept of a thread's large results, in bytes.
const MaxArtifacts = 256 << 20

// ErrArtifactsFull says that a thread has kept as much as it may.
var ErrArtifactsFull = fmt.Errorf("a thread keeps at most %d MiB of artifacts", MaxArtifacts>>20)

// WriteArtifact stores what a tool returned under its content's hash, with an
// extension that says what it is, and returns the path. Storing the same content
// again changes nothing. The error is ErrArtifactsFull where there is too much.
func (f Folder) WriteArtifact(hash string, content []byte) (string, error) {
	if err := os.MkdirAll(f.Artifacts(), dirMode); err != nil {
		return "", err
	}
	path := filepath.Join(f.Artifacts(), hash+extensionOf(content))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	found, err := f.ListArtifacts()
	if err != nil {
		return "", err
	}
	left := int64(MaxArtifacts - len(content))
	for _, info := range found {
		left -= info.Size()
	}
	if left < 0 {
		return "", ErrArtifactsFull
	}
	return path, replaceFile(path, content)
}

// RemoveArtifact removes one of the artifacts, through no link.
func (f Folder) RemoveArtifact(name string) error {
	own, err := os.OpenRoot(string(f))
	if err != nil {
		return err
	}
	err = own.Remove(filepath.Base(f.Artifacts()) + "/" + name)
	return errors.Join(err, own.Close())
}

// ListArtifacts describes the artifacts, oldest first.
func (f Folder) ListArtifacts() ([]fs.FileInfo, error) {
	entries, err := os.ReadDir(f.Artifacts())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var found []fs.FileInfo
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		found = append(found, info)
	}
	slices.SortStableFunc(found, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	return found, nil
}

// ShareArtifacts gives a thread those of another, for it is shown what refers to
// them. They are never changed, so that both can have the same file, where the file
// system has links; it is a copy elsewhere. Sharing them again changes nothing.
func (f Folder) ShareArtifacts(with Folder) error {
	found, err := f.ListArtifacts()
	if err != nil || len(found) == 0 {
		return err
	}
	if err := os.MkdirAll(with.Artifacts(), dirMode); err != nil {
		return err
	}
	for _, info := range found {
		if err := share(filepath.Join(f.Artifacts(), info.Name()), filepath.Join(with.Artifacts(), info.Name())); err != nil {
			return err
		}
	}
	return nil
}

// maxShared is far above the largest artifact, in bytes.
const maxShared = 1 << 30

func share(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	content, err := regular.Read(from, maxShared)
	if err != nil {
		return err
	}
	return replaceFile(to, content)
}

// extensionOf is one that people's programs know the content by.
func extensionOf(content []byte) string {
	if utf8.Valid(content) {
		return ".txt"
	}
	if bytes.HasPrefix(content, []byte("# v")) && bytes.Contains(content[:min(len(content), 20)], []byte(" git bundle\n")) {
		return thread.BundleSuffix
	}
	switch http.DetectContentType(content) {
	case "image/png":
		return ".png"
	case "image/jpeg":
		return ".jpg"
	case "image/gif":
		return ".gif"
	case "image/webp":
		return ".webp"
	}
	return ".bin"
}

func readBounded(path string, most int64) ([]byte, error) {
	return regular.ReadFollowed(path, most)
}

// replaceFile writes a file whole or not at all. Its draft is made beside it,
// which spares renameio the search for a folder on the same file system.
func replaceFile(path string, content []byte) error {
	return renameio.WriteFile(path, content, fileMode, renameio.WithTempDir(filepath.Dir(path)))
}
