package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// copied is where the copy of a thread's records lies on this machine.
type copied struct {
	home folder.Home
	dir  folder.Folder
	key  string // name of lock and note
}

func copyOf(local records.Local, id thread.ID) copied {
	home, sum := local.Home(), sha256.Sum256([]byte(id))
	return copied{home: home, dir: home.Of(id), key: hex.EncodeToString(sum[:16])}
}

// Modes: records are for their owner alone.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// Bounds of what lies here.
const (
	maxMeta      = folder.MaxMetaBytes // of any document
	maxArtifacts = folder.MaxArtifacts // of all of a thread
)

// encoded is what thread.json says, sealed.
func encoded(meta thread.Meta, seal *place.Seal) ([]byte, error) {
	return folder.EncodeMeta(meta, seal)
}

func (c copied) where() string { return string(c.dir) }

// path is where a file of the server lies here.
func (c copied) path(name string) string {
	switch name {
	case metaName:
		return c.dir.Meta()
	case plainName:
		return c.dir.Transcript()
	case packedName:
		return c.dir.Compressed()
	default:
		return c.dir.Capabilities()
	}
}

// isArtifact tells the names that artifacts have. A name becomes that of a file.
var isArtifact = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}\.[a-z]{3,4}$`) })

func (c copied) artifact(name string) string { return filepath.Join(c.dir.Artifacts(), name) }

// lockEvery is how often a lock is looked at that somebody has.
const lockEvery = 5 * time.Millisecond

// lock keeps other processes of this machine from changing the copy.
func (c copied) lock(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(c.home.Copies(), dirMode); err != nil {
		return nil, err
	}
	held, err := process.Await(ctx, filepath.Join(c.home.Copies(), c.key+".lock"), lockEvery)
	if err != nil {
		return nil, err
	}
	return func() { _ = held.Remove() }, nil
}

// replace writes a file whole or not at all, and makes the folder.
func (c copied) replace(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return err
	}
	return renameio.WriteFile(path, content, fileMode, renameio.WithTempDir(filepath.Dir(path)))
}

// hash is that of a small file; nil where there is none that can be read.
func (c copied) hash(path string, most int64) []byte {
	content, err := regular.ReadFollowed(path, most)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(content)
	return sum[:]
}

// note says what the transcript here is.
type note struct {
	// Writers are those of this machine that have written it, one after the other. The
	// server's is written by one of them: the transcript here is the original.
	Writers []string `json:"writers,omitempty"`
	// Without one it is a copy of so many bytes of a file of the server.
	Name       string `json:"name,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	Size       int64  `json:"size,omitempty"`
	Boot       string `json:"boot,omitempty"`
}

// wrote reports whether the transcript here is what a writer has written.
func (n note) wrote(writer string) bool { return slices.Contains(n.Writers, writer) }

// mostWriters bounds a note.
const mostWriters = 8

func (n note) with(writer string) note {
	return note{Writers: append(n.Writers[max(0, len(n.Writers)-mostWriters+1):], writer)}
}

const maxNote = 16 << 10

func (c copied) notePath() string { return filepath.Join(c.home.Copies(), c.key+".json") }

// note reads the note. One that is damaged says nothing.
func (c copied) note() (n note) {
	data, err := regular.Read(c.notePath(), maxNote)
	if err != nil || json.Unmarshal(data, &n) != nil {
		return note{}
	}
	return n
}

// noteThat replaces the note. It need not survive a crash of the machine.
func (c copied) noteThat(n note) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.home.Copies(), dirMode); err != nil {
		return err
	}
	draft, err := os.CreateTemp(c.home.Copies(), "."+c.key+"-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = draft.Write(data)
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), c.notePath())
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}

// forget removes the note.
func (c copied) forget() error { return gone(os.Remove(c.notePath())) }

// gone is nil for what is not there any more.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
