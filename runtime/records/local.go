package records

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/tools/builtin/artifact"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// Local are records in folders of this machine, one a thread.
type Local struct {
	// Home is where the folders are. It is asked for each time: the first thread
	// makes it.
	Home func() folder.Home
	// Crashpoints are those of compressing a transcript.
	Crashpoints thread.Crashpoints
}

var _ Records = Local{}

// Of implements [Records].
func (l Local) Of(id thread.ID) Thread {
	home := l.Home()
	return &local{Home: home, id: id, folder: home.Of(id), crash: l.Crashpoints}
}

// By implements [Records]. A writer has the life of the run, which is held on this machine:
// no other run can write.
func (l Local) By(id thread.ID, _ thread.Run) Thread { return l.Of(id) }

// Seal implements [Records].
func (l Local) Seal() *place.Seal { return l.Home().Seal }

// Walk implements [Records]. The file system decides which ones it visits of many.
func (l Local) Walk(most int, visit func(Found) error) (all bool, err error) {
	return folder.WalkSome(l.Home().Dir, most, func(f folder.Found) error { return visit(foundIn(f)) })
}

// Look implements [Records].
func (l Local) Look(id thread.ID) (Found, bool, error) {
	f, found, err := folder.Look(l.Home().Dir, id)
	return foundIn(f), found, err
}

// Gone implements [Records].
func (l Local) Gone() Document { return l.Home().Gone() }

func foundIn(f folder.Found) Found {
	return Found{
		ID: f.ID, Where: string(f.Folder), Linked: f.Linked, HasMeta: f.HasMeta, HasWords: f.HasWords,
		HasLives: f.HasLocks, HasRuns: f.HasRuns,
	}
}

// local are the records in the folder of a thread. Its parts are views of it.
type local struct {
	folder.Home
	id     thread.ID
	folder folder.Folder
	crash  thread.Crashpoints
}

type (
	localMeta         local
	localArtifacts    local
	localCapabilities local
	localWhole        local
)

var _ Thread = (*local)(nil)

// ID implements [Thread].
func (t *local) ID() thread.ID { return t.id }

// Check implements [Thread].
func (t *local) Check() error { return folder.Check(t.Dir, t.id) }

// Prepare implements [Thread].
func (t *local) Prepare() error { return folder.Prepare(t.Dir, t.id) }

// Begun implements [Thread].
func (t *local) Begun() (bool, error) {
	for _, file := range []string{t.folder.Meta(), t.folder.Transcript(), t.folder.Compressed()} {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

// Touched implements [Thread].
func (t *local) Touched() (time.Time, error) {
	info, err := os.Lstat(string(t.folder))
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// RemoveLeftover implements [Thread].
func (t *local) RemoveLeftover() (bool, error) {
	entries, err := os.ReadDir(string(t.folder))
	if err != nil {
		return false, err
	}
	locks, err := t.folder.Locks()
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		name := filepath.Join(string(t.folder), e.Name())
		if name != t.folder.Log() && !slices.Contains(locks, name) || !e.Type().IsRegular() {
			return false, nil
		}
	}
	for _, path := range locks { // a process that begins there now has one, and keeps it
		if err := process.RemoveLock(path); errors.Is(err, process.ErrLocked) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	if err := os.Remove(t.folder.Log()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	err = os.Remove(string(t.folder))
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		return false, nil
	}
	return err == nil, err
}

// Whole implements [Thread].
func (t *local) Whole() Whole { return (*localWhole)(t) }

// Remove implements [Whole].
func (t *localWhole) Remove() error {
	if err := folder.Remove(t.Dir, t.id); err != nil {
		return fmt.Errorf("remove the records of %s: %w", t.id, err)
	}
	return nil
}

// Size implements [Whole].
func (t *localWhole) Size() (int64, error) { return folder.Size(t.Dir, t.id) }

// Compressible implements [Whole].
func (t *localWhole) Compressible() (int64, error) { return (*local)(t).words().compressible() }

// Compress implements [Whole].
func (t *localWhole) Compress() (before, after int64, err error) {
	if before, after, err = (*local)(t).words().compress(); err != nil {
		return 0, 0, fmt.Errorf("compress the transcript of %s: %w", t.id, err)
	}
	return before, after, nil
}

// Meta implements [Thread].
func (t *local) Meta() Meta { return (*localMeta)(t) }

// Transcript implements [Thread].
func (t *local) Transcript() Transcript { return t.words() }

func (t *local) words() words {
	return words{File: File(t.folder.Transcript()), packed: t.folder.Compressed(), crash: t.crash.At}
}

// Artifacts implements [Thread].
func (t *local) Artifacts() Artifacts { return (*localArtifacts)(t) }

// Capabilities implements [Thread].
func (t *local) Capabilities() Text { return (*localCapabilities)(t) }

// Log implements [Thread].
func (t *local) Log() Source { return File(t.folder.Log()) }

// Read implements [Meta].
func (m *localMeta) Read() (thread.Meta, error) { return m.folder.ReadMeta(m.Seal) }

// Peek implements [Meta].
func (m *localMeta) Peek() (thread.Meta, error) { return m.folder.PeekMeta() }

// Write implements [Meta].
func (m *localMeta) Write(meta thread.Meta) error { return m.folder.WriteMeta(meta, m.Seal) }

// Remove implements [Meta].
func (m *localMeta) Remove() error { return os.Remove(m.folder.Meta()) }

// Signer implements [Meta].
func (m *localMeta) Signer() string { return m.folder.MetaSigner() }

// Stamp implements [Meta].
func (m *localMeta) Stamp() (Stamp, error) { return File(m.folder.Meta()).Stamp() }

// Load implements [tool.Artifacts].
func (a *localArtifacts) Load(ref string) ([]byte, error) {
	return artifact.Folder(a.folder.Artifacts()).Load(ref)
}

// Write implements [Artifacts].
func (a *localArtifacts) Write(hash string, content []byte) (string, error) {
	return a.folder.WriteArtifact(hash, content)
}

// List implements [Artifacts].
func (a *localArtifacts) List() ([]Artifact, error) {
	files, err := a.folder.ListArtifacts()
	if err != nil || len(files) == 0 {
		return nil, err
	}
	list := make([]Artifact, len(files))
	for i, info := range files {
		list[i] = Artifact{Name: info.Name(), Size: info.Size()}
	}
	return list, nil
}

// Each implements [Artifacts].
func (a *localArtifacts) Each(visit func(name string, open func() (Reader, error)) error) error {
	entries, err := os.ReadDir(a.folder.Artifacts())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		open := func() (Reader, error) { return openRegular(filepath.Join(a.folder.Artifacts(), e.Name())) }
		if err := visit(e.Name(), open); err != nil {
			return err
		}
	}
	return nil
}

// openRegular opens a file that is no link, folder or pipe.
func openRegular(path string) (Reader, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return File(path).Open()
}

// Remove implements [Artifacts].
func (a *localArtifacts) Remove(name string) error { return a.folder.RemoveArtifact(name) }

// ShareWith implements [Artifacts].
func (a *localArtifacts) ShareWith(id thread.ID) error {
	if err := a.folder.ShareArtifacts(a.Of(id)); err != nil {
		return fmt.Errorf("share the artifacts of %s: %w", a.id, err)
	}
	return nil
}

// Open implements [Source].
func (c *localCapabilities) Open() (Reader, error) { return File(c.folder.Capabilities()).Open() }

// Stamp implements [Source].
func (c *localCapabilities) Stamp() (Stamp, error) { return File(c.folder.Capabilities()).Stamp() }

// Where implements [Source].
func (c *localCapabilities) Where() string { return c.folder.Capabilities() }

// Write implements [Text].
func (c *localCapabilities) Write(text []byte) error { return c.folder.WriteCapabilities(text) }
