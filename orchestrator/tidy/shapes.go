package tidy

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// DeleteRequest asks to delete a thread with what goes with it.
type DeleteRequest struct {
	ThreadID thread.ID
	DryRun   bool
	Confirm  bool // as a dry run has shown
	Force    bool // threads that live are stopped first
	// From is the thread that asks; empty for a client or a person.
	From thread.ID
	// By is who asks: what was shown to one is confirmed by that one.
	By string
	// Agreed says that a person has been asked, or does not want to be. With a Digest
	// that holds for what has it.
	Agreed bool
	Digest string
	// Progress may be nil.
	Progress func(Progress)
}

// Deleted is the answer to delete_thread.
type Deleted struct {
	Success   bool          `json:"success"`
	ThreadID  thread.ID     `json:"thread_id"`
	DryRun    bool          `json:"dry_run,omitempty" jsonschema:"nothing was deleted"`
	Threads   int           `json:"threads" jsonschema:"that go: the chain and all below it"`
	ThreadIDs []thread.ID   `json:"thread_ids" jsonschema:"of many the first"`
	Bytes     int64         `json:"bytes" jsonschema:"of their folders"`
	With      []string      `json:"with,omitempty" jsonschema:"what else goes with them"`
	Spend     thread.Micros `json:"spend" jsonschema:"US dollars; it stays in the sums above and of the day"`
	Living    []thread.ID   `json:"living,omitempty" jsonschema:"of these, which have not ended"`
	Blocked   string        `json:"blocked,omitempty" jsonschema:"why they are deleted with force only"`
	Grown     int           `json:"grown,omitempty" jsonschema:"threads that came since the dry run and went too"`
	DeletedAt string        `json:"deleted_at,omitempty" jsonschema:"it was deleted before"`
	Left      int           `json:"left,omitempty" jsonschema:"threads whose files are still to be removed; a sweep goes on"`
	Kept      []string      `json:"kept,omitempty" jsonschema:"what could not be removed, and why"`
	Next      string        `json:"next,omitempty" jsonschema:"what to call next"`

	digest string
}

// Digest tells what would go from anything else that would.
func (d Deleted) Digest() string { return d.digest }

// mostIDs bounds the ids that are told.
const mostIDs = 20

// of tells of a set.
func (t *Tidier) tell(s set) Deleted {
	ids := s.ids()
	return Deleted{
		Success: true, ThreadID: s.top, Threads: len(ids), ThreadIDs: ids[:min(len(ids), mostIDs)],
		Bytes: t.bytes(s), Spend: s.spend(), Living: first(s.living()), digest: s.digest(),
	}
}

func first(ids []thread.ID) []thread.ID { return ids[:min(len(ids), mostIDs)] }
