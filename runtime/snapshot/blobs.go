package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Blobs keeps contents by their hashes, once each. It is safe for concurrent use, also by
// several processes and machines.
//
// A content that no snapshot has goes some time after its last use, see [Collect]. So the
// maker of a snapshot says by Use which contents it needs, and puts those that are missing.
type Blobs interface {
	// Use notes that contents are needed from now on, and returns those that are missing,
	// in the order given.
	Use(ctx context.Context, hashes []Hash) (missing []Hash, err error)
	// Put keeps a content of so many bytes. One that does not have the hash or the size is
	// an [*AlteredError], and nothing of it is kept. A content that is there already is
	// used, see Use. When Put returns, the content survives a crash of the machine.
	Put(ctx context.Context, hash Hash, size int64, content io.Reader) error
	// Get opens a content. Reading holds the content against the hash: where they differ it
	// ends in an [*AlteredError] in the place of [io.EOF]. Without such a content the error is
	// a [*MissingError]. The caller closes it.
	Get(ctx context.Context, hash Hash) (io.ReadCloser, error)
	// Stat describes a content. Without it the error is a [*MissingError].
	Stat(ctx context.Context, hash Hash) (Blob, error)
	// All lists the contents, in no particular order. Those that come or go meanwhile may
	// be listed or not.
	All(ctx context.Context) iter.Seq2[Blob, error]
	// Remove takes a content away unless it was used since that time, and reports whether
	// it did. One that is not there is no error.
	Remove(ctx context.Context, hash Hash, since time.Time) (removed bool, err error)
}

// Blob describes a content.
type Blob struct {
	Hash   Hash
	Size   int64     // in bytes
	UsedAt time.Time // when it was put, or last used
}

// Names says which snapshot a thread without a parent works by, which is kept for as long as
// that thread; those below it work by the same, and have no name here.
type Names interface {
	// Name notes the snapshot that a thread works by. No crash of the machine loses that and
	// keeps what was durably written to the same place after it returned.
	Name(ctx context.Context, of thread.ID, snapshot Hash) error
	// Forget takes back what was noted of a thread. Where nothing was it is no error.
	Forget(ctx context.Context, of thread.ID) error
	// Named lists what is noted, in no particular order.
	Named(ctx context.Context) iter.Seq2[Reference, error]
}

// Reference is a thread that works by a snapshot.
type Reference struct {
	Thread   thread.ID
	Snapshot Hash
	At       time.Time // when it was noted
}

// Store is where the snapshots of a project are kept.
type Store interface {
	Blobs
	Names
}

// MissingError says that a content is not there. It is [ErrUnusable].
type MissingError struct{ Hash Hash }

func (e *MissingError) Error() string { return fmt.Sprintf("content %s is missing", e.Hash) }

// Is reports that the snapshot cannot be used.
func (e *MissingError) Is(target error) bool { return target == ErrUnusable }

// AlteredError says that a content is not the one that its hash names. It is [ErrUnusable].
type AlteredError struct {
	Hash Hash
	Why  string
}

func (e *AlteredError) Error() string {
	return fmt.Sprintf("content %s is not what it was: %s", e.Hash, e.Why)
}

// Is reports that the snapshot cannot be used.
func (e *AlteredError) Is(target error) bool { return target == ErrUnusable }

// ErrUnusable is every error about a snapshot that is not as it was made: contents that
// are missing or altered, and manifests that nobody vouches for.
var ErrUnusable = errors.New("the snapshot cannot be used")
