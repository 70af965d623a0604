package remote

import (
	"context"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/recordserver"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
)

// Options are what records on a server need.
type Options struct {
	Local  records.Local // the folders on this machine
	Server *recordserver.Server
	// Boot tells one start of this machine from another: what was copied before may not
	// have reached the disk. Empty trusts no copy that another process has made.
	Boot string
	// Patience is how long a shipment is tried again while the server does not answer; 0
	// is 20 seconds.
	Patience time.Duration
	// Crashpoints are those of [Crashpoints].
	Crashpoints thread.Crashpoints
}

// Crash points of shipping and copying, in order.
const (
	CrashDescribed thread.Crashpoint = "records.described" // a document is on the server, not in the folder
	CrashTaken     thread.Crashpoint = "records.taken"     // this process is the transcript's writer
	CrashSynced    thread.Crashpoint = "records.synced"    // the new part is on this disk alone
	CrashContents  thread.Crashpoint = "records.contents"  // the server has the artifacts' contents, which nothing names
	CrashShipped   thread.Crashpoint = "records.shipped"   // the server has the new part
	CrashCopied    thread.Crashpoint = "records.copied"    // the folder has what the server has; no note says so
)

// Crashpoints lists the crash points, in order.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{CrashDescribed, CrashTaken, CrashSynced, CrashContents, CrashShipped, CrashCopied}
}

// Records are those of a project on a server. It is safe for concurrent use.
type Records struct {
	Options

	mu   sync.Mutex
	open map[thread.ID]*appender // transcripts that this process writes
	ears ears
}

var _ records.Records = (*Records)(nil)

// New returns the records on a server.
func New(o Options) *Records {
	if o.Patience == 0 {
		o.Patience = 20 * time.Second
	}
	return &Records{Options: o, open: map[thread.ID]*appender{}}
}

// Of implements [records.Records].
func (r *Records) Of(id thread.ID) records.Thread { return r.By(id, "") }

// By implements [records.Records].
func (r *Records) By(id thread.ID, run thread.Run) records.Thread {
	return &kept{Records: r, id: id, run: run, local: r.Local.Of(id), copy: copyOf(r.Local, id)}
}

// Seal implements [records.Records].
func (r *Records) Seal() *place.Seal { return r.Local.Seal() }

// walkPage is how many threads one statement of a walk reads.
const walkPage = 500

// Walk implements [records.Records]. Threads that are kept on this machine alone are those
// of nobody.
func (r *Records) Walk(most int, visit func(records.Found) error) (all bool, err error) {
	after := thread.ID("")
	for left := most; ; {
		page, err := r.Server.Threads(context.Background(), after, min(walkPage, left)+1)
		if err != nil {
			return false, err
		}
		for _, found := range page {
			if left == 0 {
				return false, nil
			}
			left--
			if err := visit(r.found(found)); err != nil {
				return false, err
			}
			after = found.ID
		}
		if len(page) == 0 {
			return true, nil
		}
	}
}

// found is a thread of the server, with what this machine has of it.
func (r *Records) found(k recordserver.Kept) records.Found {
	f, is, err := r.Local.Look(k.ID)
	if !is || err != nil || f.ID != k.ID {
		f = records.Found{}
	}
	f.ID, f.Where, f.HasMeta, f.HasWords = k.ID, copyOf(r.Local, k.ID).where(), false, false
	for _, name := range k.Files {
		f.HasMeta = f.HasMeta || name == metaName
		f.HasWords = f.HasWords || name == plainName || name == packedName
	}
	return f
}

// Look implements [records.Records].
func (r *Records) Look(id thread.ID) (records.Found, bool, error) {
	files, err := r.Server.Files(context.Background(), id)
	if err != nil {
		return records.Found{}, false, err
	}
	if len(files) == 0 { // a life is taken before anything is written
		f, found, err := r.Local.Look(id)
		f.HasMeta, f.HasWords = false, false
		return f, found && err == nil && (f.HasLives || f.Linked), err
	}
	kept := recordserver.Kept{ID: id}
	for _, file := range files {
		kept.Files = append(kept.Files, file.Name)
	}
	return r.found(kept), true, nil
}

// Gone implements [records.Records]. It is needed when databases are lost that lie beside
// the folders, and is kept there.
func (r *Records) Gone() records.Document { return r.Local.Gone() }

// writing is the transcript of a thread that this process has open for writing; nil: none.
func (r *Records) writing(id thread.ID) *appender {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open[id]
}

// Close ends what is followed.
func (r *Records) Close() { r.ears.close() }
