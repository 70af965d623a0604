package memory

import (
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Kind is what an entry is.
type Kind string

// The kinds. All but [Result] are written; that one is made by index_thread of what a
// thread returned.
const (
	Decision   Kind = "decision"
	Discovery  Kind = "discovery"
	Constraint Kind = "constraint"
	Workaround Kind = "workaround"
	Preference Kind = "preference"
	Result     Kind = "result"
)

// Written are the kinds that somebody writes.
func Written() []Kind { return []Kind{Decision, Discovery, Constraint, Workaround, Preference} }

// Kinds are all of them.
func Kinds() []Kind { return append(Written(), Result) }

// By is who wrote an entry.
type By string

// The writers. Only a person changes what a person wrote.
const (
	ByThread By = "thread"
	ByClient By = "client" // of the MCP server, outside threads
	ByPerson By = "person" // at the command line
)

// Writer is who writes, as the runtime knows it; nobody says it of themselves.
type Writer struct {
	By        By
	Thread    thread.ID // of a thread
	ChainRoot thread.ID // the first thread of its chain
	Directive string    // that the thread runs
}

// Origin is one who said what an entry says.
type Origin struct {
	By        By        `json:"by"`
	Thread    thread.ID `json:"thread_id,omitempty"`
	Directive string    `json:"directive,omitempty"`
	At        time.Time `json:"at"`
	From      string    `json:"from,omitempty"` // whom a file named that a person brought in
}

// OfPerson reports whether a person vouches for it: they wrote it, and not a file that they
// brought in.
func (o Origin) OfPerson() bool { return o.By == ByPerson && o.From == "" }

// Entry is one thing worth knowing later.
type Entry struct {
	Key   string `json:"key"`
	Kind  Kind   `json:"kind"`
	Title string `json:"title"` // one line
	Text  string `json:"text"`
	// Origins have all said it, the writer first.
	Origins      []Origin  `json:"origins"`
	Supersedes   []string  `json:"supersedes,omitempty"`
	SupersededBy string    `json:"superseded_by,omitempty"` // it is history then, and not recalled
	Project      string    `json:"project"`                 // its folder, where the entry was written
	EditedAt     time.Time `json:"edited_at,omitzero"`      // by a person
}

// Writer is who wrote the entry.
func (e Entry) Writer() Origin { return e.Origins[0] }

// Current reports whether nothing has taken its place.
func (e Entry) Current() bool { return e.SupersededBy == "" }
