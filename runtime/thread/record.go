package thread

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"
)

// Record is a thread's registry row: the truth about it that every process
// shares. Times are UTC with millisecond precision; zero means not yet.
type Record struct {
	ThreadID             ID
	Kind                 Kind
	Directive            string // item id of the directive, or of the tool for a tool run
	Run                  Run    // of whoever runs it, or settles it
	Name                 string // for people; set from the first words of the prompt when not given
	ParentID             ID     // empty for a root
	Status               State
	Process                     // the thread's
	Model                string // "provider/model"
	ContinuationOf       ID
	ContinuationThreadID ID
	ChainRootID          ID
	Outcome              *Outcome // the result column; nil until terminal
	Cost                 Cost
	SpawnCount           int
	TokenCount           int64 // tokens in the context at the last report
	RequestKey           string
	RequestHash          string          // of the call that the key names; empty when only the item is known
	Metadata             json.RawMessage // free-form JSON object
	QueuedAt             time.Time       // when it was put in the queue for a slot
	AdmittedAt           time.Time       // when it was given one
	Yielded              bool            // it only waits for others, and occupies no slot
	Unread               int             // messages that it has not read, see [Message]
	CancelRequestedAt    time.Time
	HandoffAskedAt       time.Time // see [HandoffRequest]
	CreatedAt            time.Time
	UpdatedAt            time.Time
	CompletedAt          time.Time
	RetryNote            string    // why no other attempt was made, of a thread that was to be tried again
	RetryAt              time.Time // when another attempt is due; zero: none is, or it was made or given up
	LastUsed             time.Time
}

// Queued reports whether the thread is ready to run and is queued for a
// slot. It has no process then, and nobody holds its life lock.
func (r Record) Queued() bool {
	return r.Status == Created && !r.QueuedAt.IsZero() && r.AdmittedAt.IsZero()
}

// Run names one claim of a thread's life: whoever holds that names it with each
// write, and one whose claim was replaced can write nothing. It is random, and empty
// in the rows of older versions and in those that were restored, of which whoever
// writes first takes it.
type Run string

// runMark begins a run by which the lock of a life is named. Those of older versions
// begin with no small letter.
const runMark = "r"

// NewRun makes a run that no other has.
func NewRun() Run { return Run(runMark + rand.Text()) }

// NamesLife reports whether the life of a run is known by the run. That of an older
// version, or of a row without a run, is known by the thread alone.
func (r Run) NamesLife() bool {
	text, ours := strings.CutPrefix(string(r), runMark)
	return ours && len(text) == 26 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// Kind tells what a registered run executes.
type Kind string

// The kinds of run.
const (
	KindDirective Kind = "directive"
	KindTool      Kind = "tool"
	// KindSet is a fan-out set: it has no process. It consists of the threads below
	// it, and has ended when they have.
	KindSet Kind = "set"
)

// DoingStarting is [Problem.Doing] of a thread that ended before it had a process.
const DoingStarting = "starting"

// Outcome is how a thread ended. It is decided in one place, written to the
// transcript first and then applied to ledger, registry and thread.json.
type Outcome struct {
	State    State           `json:"status"`
	Result   string          `json:"result,omitempty"`  // final text
	Outputs  map[string]any  `json:"outputs,omitempty"` // what directive_return gave
	Data     json.RawMessage `json:"data,omitempty"`    // what a tool run returned
	Error    *Problem        `json:"error,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
	Handoff  *Handoff        `json:"handoff,omitempty"` // of a thread that is continued
	Changes  *Changes        `json:"changes,omitempty"` // in its workspace; nil: it has none
	Retry    *Retry          `json:"retry,omitempty"`   // of a failed thread, as it was decided then
}

// Handoff says which thread continues one whose context window was full.
type Handoff struct {
	NewThreadID ID `json:"new_thread_id"`
	// TrailingTurns is how many turns of the conversation the successor was given.
	TrailingTurns int `json:"trailing_turns"`
}

// Problem says why a thread did not complete.
type Problem struct {
	Code    string `json:"code" jsonschema:"stable code of the failure"`
	Message string `json:"message" jsonschema:"what went wrong"`
	Doing   string `json:"doing,omitempty" jsonschema:"what the thread was doing when it happened"`
	Signal  string `json:"signal,omitempty" jsonschema:"signal that ended the process, where it is known"`
	Passing bool   `json:"passing,omitempty" jsonschema:"true: the model could not be asked for a reason that passes"`
}
