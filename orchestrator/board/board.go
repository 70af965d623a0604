// Package board is the one value that every face of the threads of a project shows: the
// page, the terminal view, the MCP App and --json. A board has a version; with that of an
// earlier one it tells only what has changed since, by row.
//
// It is kept by comparing rows: each look reads how the threads stand (narrow rows, one
// statement a database), and only of those that have changed what is long or lies in
// files. One look serves everybody who follows, there is at most one a second, and none
// while nobody follows.
package board

import (
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Board is how the threads of a project stand. Times are UTC, money is in US dollars.
type Board struct {
	// Version names this state of the board. It means something to the keeper alone that
	// gave it out.
	Version string `json:"version"`
	// Whole says that Rows are all there are. Otherwise they replace those of the same key,
	// and the rows of Gone are no more.
	Whole   bool        `json:"whole"`
	At      time.Time   `json:"at"`
	Totals  Totals      `json:"totals"`
	Rows    []*Row      `json:"rows"` // a parent before what is below it, the newest first
	Gone    []thread.ID `json:"gone,omitempty"`
	Omitted int         `json:"omitted"` // threads that no row stands for; they have ended
}

// Totals sum up all rows of a board.
type Totals struct {
	Working  int           `json:"working"` // have not ended and are not queued
	Asking   int           `json:"asking"`
	Queued   int           `json:"queued"`
	Ended    int           `json:"ended"`    // of those that are shown
	Spend    thread.Micros `json:"spend"`    // of the trees that are shown
	Reserved thread.Micros `json:"reserved"` // held below roots, and not spent
}

// Row is a thread with those that it continues.
type Row struct {
	Key      thread.ID   `json:"key"`              // the first thread of the chain
	ThreadID thread.ID   `json:"thread_id"`        // the newest, which operations are told
	Links    int         `json:"links"`            // threads of the chain
	Chain    []thread.ID `json:"chain,omitempty"`  // those of a chain of several, first to newest; the last 20
	Parent   thread.ID   `json:"parent,omitempty"` // key of the row above

	Kind      thread.Kind  `json:"kind"`
	Directive string       `json:"directive"`
	Name      string       `json:"name,omitempty"`
	Status    thread.State `json:"status"`
	Asks      bool         `json:"asks,omitempty"`
	Queued    bool         `json:"queued,omitempty"`
	Waits     bool         `json:"waits,omitempty"`    // it only waits for others
	Stopping  bool         `json:"stopping,omitempty"` // it has been asked to stop
	Model     string       `json:"model,omitempty"`
	Worker    string       `json:"worker,omitempty"` // that runs it, or ran it last

	// Of the newest thread, which its limits are about.
	Turns  int            `json:"turns"`
	Tokens int64          `json:"tokens"`
	Spend  thread.Micros  `json:"spend"`
	Limits *thread.Limits `json:"limits,omitempty"` // nil: they cannot be read
	// ChainCost is what all threads of a chain of several have used themselves.
	ChainCost *Cost         `json:"chain_cost,omitempty"`
	TreeSpend thread.Micros `json:"tree_spend"` // of the chain and all below it
	Budget    *Budget       `json:"budget,omitempty"`
	Context   *Context      `json:"context,omitempty"`

	Question  *Question       `json:"question,omitempty"`   // the oldest that is open
	LastWords string          `json:"last_words,omitempty"` // at most 200 bytes
	Verified  Verified        `json:"verified"`
	Unread    int             `json:"unread,omitempty"` // messages to it that it has not read
	Error     *Error          `json:"error,omitempty"`  // why it did not complete
	Warnings  []string        `json:"warnings,omitempty"`
	Damaged   []string        `json:"damaged,omitempty"` // what of it cannot be read or trusted
	Changes   *thread.Changes `json:"changes,omitempty"` // in its workspace
	Applied   bool            `json:"applied,omitempty"` // Changes are, since the thread has ended
	Entries   *Entries        `json:"entries,omitempty"` // of a set

	CreatedAt time.Time  `json:"created_at"` // the first of the chain
	UpdatedAt time.Time  `json:"updated_at"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	RetryAt   *time.Time `json:"retry_at,omitempty"` // it has failed and is tried again then
}

// Cost is what threads have used.
type Cost struct {
	Turns  int           `json:"turns"`
	Tokens int64         `json:"tokens"`
	Spend  thread.Micros `json:"spend"`
}

// Budget is the money of a thread and all below it: Limit is the sum of the others,
// unless more was spent than was allowed.
type Budget struct {
	Limit    thread.Micros `json:"limit"`
	Spent    thread.Micros `json:"spent"`    // by itself and by children that have ended
	Reserved thread.Micros `json:"reserved"` // held by children that work, and by a call that is on its way
	Left     thread.Micros `json:"left"`
}

// Context is how full the conversation of a thread is, in tokens.
type Context struct {
	Used   int64 `json:"used"`             // at the last report
	Window int64 `json:"window,omitempty"` // of the model; 0: not known
}

// Question is what a thread waits to be told.
type Question struct {
	ID         string                     `json:"id"`
	Kind       thread.QuestionKind        `json:"kind"`
	Code       string                     `json:"code,omitempty"` // what it is about, such as turns_exceeded
	Text       string                     `json:"text"`
	Options    []thread.Decision          `json:"options"`
	Means      map[thread.Decision]string `json:"means"` // what follows from each
	Default    thread.Decision            `json:"default"`
	Limits     item.LimitSet              `json:"limits,omitempty"`  // as they are
	Most       item.LimitSet              `json:"most,omitempty"`    // what they can be raised to
	Summary    string                     `json:"summary,omitempty"` // that a handoff proposes
	AskedAt    time.Time                  `json:"asked_at"`
	DeadlineAt time.Time                  `json:"deadline_at"` // then Default holds
}

// Error says why a thread did not complete.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Entries counts the entries of a set.
type Entries struct {
	Items     int `json:"items"`
	Waiting   int `json:"waiting"` // for their start, or for another attempt
	Working   int `json:"working"`
	Completed int `json:"completed"`        // those used again included
	Failed    int `json:"failed"`           // those that were refused or cancelled included
	Reused    int `json:"reused,omitempty"` // of those that completed
	Deleted   int `json:"deleted,omitempty"`
}

// Verified says whether what a thread left is what was signed.
type Verified string

// The verdicts.
const (
	Unknown Verified = "unknown" // nobody has looked since its files changed
	Yes     Verified = "yes"
	No      Verified = "no"
)

// Bounds of a board.
const (
	// MostEnded is how many threads that have ended are shown: those used last.
	MostEnded = 200
	// mostEndedRoots is how many roots of them, should those used last be below few.
	mostEndedRoots = 50

	maxWords    = 200 // bytes of last words
	maxLabel    = 400 // of names; those of the store are shorter
	maxText     = 2000
	maxMessage  = 500
	maxWarnings = 5
	maxLinks    = 20 // ids of a chain
)
