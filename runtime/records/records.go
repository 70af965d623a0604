// Package records is what the threads of a project leave beside their rows:
// metadata, transcript, artifacts, capabilities and log. They are asked for by the
// thread's id. Where they are kept is known to the implementation alone: [Local]
// keeps them in folders of this machine.
//
// The error of a record that is not there wraps fs.ErrNotExist.
package records

import (
	"errors"
	"io"
	"math"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/itemfile"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Records are those of all threads of a project.
type Records interface {
	// Of returns the records of a thread and looks at nothing. The id must have come
	// from the registry or from [thread.ParseID].
	Of(thread.ID) Thread
	// By returns the same for what writes as a run of the thread: its starter, its process,
	// or whoever settles it. Where other machines read the records too, a run that the
	// thread has no more writes nothing (store.ErrFenced), and those of a thread that has
	// not ended are written by its run alone.
	By(thread.ID, thread.Run) Thread
	// Seal signs what is written here and verifies what is read; nil: no thread of the
	// user has been here, and nothing can be written.
	Seal() *place.Seal
	// Walk visits the threads of which anything is kept, at most so many, in the order
	// of their ids until visit returns an error, and reports whether those were all. Its
	// cost does not grow with the number of threads beyond that.
	Walk(most int, visit func(Found) error) (all bool, err error)
	// Look finds one thread as Walk would. It finds a symbolic link that is on the way
	// in its place, whose id is then another.
	Look(thread.ID) (f Found, found bool, err error)
	// Stage makes a place for threads that come from elsewhere, which nobody finds before
	// they are moved. There is one at a time: while somebody has it the error wraps
	// ErrStaged. It removes the leftovers of one that was cut short.
	Stage() (Stage, error)
	// Gone is what outlives the databases of the threads that were deleted.
	Gone() Document
}

// Document is one of the project, sealed.
type Document interface {
	// Read decodes what the seal vouches for. Without a document, or a seal, the error
	// wraps fs.ErrNotExist.
	Read(into any) error
	// Write replaces it whole or not at all.
	Write(v any) error
}

// Thread are the records of one thread.
type Thread interface {
	ID() thread.ID
	// Check refuses a thread whose records could not be kept, with an error wrapping
	// thread.ErrUnfit. It makes nothing.
	Check() error
	// Prepare checks the same, and makes the place of the records.
	Prepare() error
	// Begun reports whether a thread has metadata or a transcript.
	Begun() (bool, error)
	// Touched is when anything was last added to the records or removed from them.
	Touched() (time.Time, error)
	// RemoveLeftover removes what a start has left that was cut short before the thread
	// was registered. When there is anything else, or somebody has a life of the
	// thread, it removes nothing of that.
	RemoveLeftover() (removed bool, err error)
	// Whole is all of the records together.
	Whole() Whole

	Meta() Meta
	Transcript() Transcript
	Artifacts() Artifacts
	Capabilities() Text
	Log() Source
}

// Whole is all that is kept of a thread.
type Whole interface {
	// Remove removes it. It can be repeated. A link in its place is removed and not
	// followed; with one on the way there the error is ErrLinked, and nothing is removed.
	Remove() error
	// Size is how many bytes it takes.
	Size() (int64, error)
	// Compressible is how many bytes of it Compress would make smaller; 0: none.
	Compressible() (int64, error)
	// Compress makes smaller what is worth it, and returns how many bytes that had and
	// has. Everything reads the same afterwards, and can be written to. The caller has a
	// life of the thread.
	Compress() (before, after int64, err error)
}

// ErrLinked says that records of a thread are not where they should be: something that
// is not followed is in the way.
var ErrLinked = itemfile.ErrLinked

// ErrLost says that nobody will find what is written to a transcript.
var ErrLost = errors.New("the transcript was moved, replaced or deleted")

// Found is a thread of which something is kept.
type Found struct {
	ID       thread.ID
	Where    string // for people
	Linked   bool   // a symbolic link, which is not followed
	HasMeta  bool
	HasWords bool // a transcript
	HasLives bool // of lives, which somebody may have or which a process has left
	HasRuns  bool // lives among those that the runs name; remains of the others stay
}

// Meta is the document that describes a thread, thread.json.
type Meta interface {
	// Read returns what the seal vouches for, or an error wrapping thread.ErrNoMeta.
	Read() (thread.Meta, error)
	// Peek returns it as it is, for counts and logs. Nothing may rely on it.
	Peek() (thread.Meta, error)
	// Write replaces it whole or not at all, sealed.
	Write(thread.Meta) error
	// Remove takes it away, so that the thread cannot run.
	Remove() error
	// Signer is the fingerprint of the key that has signed it, as it says itself; empty
	// when it says none, or cannot be read.
	Signer() string
	Stamp() (Stamp, error)
}

// Source is a record that can be read, also while it grows.
type Source interface {
	Open() (Reader, error)
	Stamp() (Stamp, error)
	// Where tells people where it is. Nothing is read by it.
	Where() string
}

// Reader reads a record.
type Reader interface {
	io.ReaderAt
	io.Closer
	Size() (int64, error)
}

// ReadAll reads a record from its beginning, and no more of it than most bytes.
func ReadAll(open func() (Reader, error), most int64) ([]byte, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.NewSectionReader(r, 0, most))
	return content, errors.Join(err, r.Close())
}

// CopyTo writes a record from its beginning to its end, in pieces.
func CopyTo(to io.Writer, open func() (Reader, error)) error {
	r, err := open()
	if err != nil {
		return err
	}
	_, err = io.Copy(to, io.NewSectionReader(r, 0, math.MaxInt64))
	return errors.Join(err, r.Close())
}

// Stamp tells one state of a record from another: a record with the same stamp has
// the same content, if it is only replaced or appended to.
type Stamp struct {
	Object  [2]uint64 // changes when the record is replaced
	Size    int64
	Changed time.Time
}

// Same reports whether a record has not changed between two stamps.
func (s Stamp) Same(other Stamp) bool {
	return s.Object == other.Object && s.Size == other.Size && s.Changed.Equal(other.Changed)
}

// Transcript is what a thread did. One process appends to it, the one that has the
// thread's life.
type Transcript interface {
	Source
	// Append opens the transcript to be written, and makes it when there is none.
	Append() (Appender, error)
	// Watch returns a channel that is told when more may have been written, until the
	// caller calls stop. It may miss something, so the caller looks from time to time.
	Watch() (written <-chan struct{}, stop func())
}

// Appender writes to the end of a transcript. It reads what was written, too.
type Appender interface {
	Reader
	io.Writer
	// Truncate cuts off what follows so many bytes.
	Truncate(size int64) error
	// Sync returns when all that was written before the call survives a crash of the
	// machine. More may be written meanwhile, from another goroutine.
	Sync() error
	// InPlace returns an error wrapping ErrLost when readers find another transcript,
	// or none.
	InPlace() error
}

// Artifacts are large results of a thread, each named by the SHA-256 of its content
// with an extension that says what it is.
type Artifacts interface {
	// Artifacts for tools reads the one of a reference.
	tool.Artifacts
	// Write stores what has that hash, in hex, and tells people where it is. To store
	// it again changes nothing.
	Write(hash string, content []byte) (where string, err error)
	// List describes the artifacts, oldest first.
	List() ([]Artifact, error)
	// Each visits everything that is kept as an artifact, with what is no artifact,
	// until visit returns an error.
	Each(visit func(name string, open func() (Reader, error)) error) error
	// Remove removes the one of that name, as List has it.
	Remove(name string) error
	// ShareWith gives them to another thread, which is shown what refers to them. To
	// share them again changes nothing.
	ShareWith(thread.ID) error
}

// Artifact is one of a thread.
type Artifact struct {
	Name string // hash and extension
	Size int64
}

// Text is a document that is written once.
type Text interface {
	Source
	Write([]byte) error
}

// CapabilitiesName is what a signature of the capabilities of a thread is for.
func CapabilitiesName(id thread.ID) sign.Name {
	return sign.Name{Kind: sign.KindCapabilities, ID: string(id)}
}
