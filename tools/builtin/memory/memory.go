package memory

import (
	"context"
	"errors"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ErrOff says that memory is not switched on.
var ErrOff = errors.New("memory is off")

// Memory is what the tools work on. Errors that the caller can do something about are
// *[tool.Fault]s.
type Memory interface {
	Write(ctx context.Context, by Writer, n New) (Wrote, error)
	Recall(ctx context.Context, q Question) (Recalled, error)
	List(ctx context.Context, f Filter) (Listed, error)
	Forget(ctx context.Context, by Writer, key string) (Forgotten, error)
	// IndexThread notes what a thread returned. A thread does it for itself and those
	// below it.
	IndexThread(ctx context.Context, by Writer, id thread.ID) (Wrote, error)
}

// New is an entry to be written.
type New struct {
	Kind       Kind
	Title      string
	Text       string
	Supersedes []string // keys of entries whose place it takes
	// Mask hides the secrets of the writing thread; nil: it has none.
	Mask tool.Masker
	From string // see [Origin]
}

// Wrote says what became of an entry.
type Wrote struct {
	Key string `json:"key"`
	// Folded says that an entry said the same already: Key is its key, and Existing what
	// it says.
	Folded   bool   `json:"folded,omitempty"`
	Existing string `json:"existing,omitempty"`
	// Near is the key of an entry that says nearly the same, or its opposite.
	Near       string   `json:"near,omitempty"`
	Superseded []string `json:"superseded,omitempty"`
	Removed    int      `json:"secrets_removed,omitempty"`
	Note       string   `json:"note,omitempty"`
}

// Question asks what is known about something.
type Question struct {
	Text      string
	Thread    thread.ID // that asks: it and its chain are left out; empty outside threads
	ChainRoot thread.ID
	Kinds     []Kind  // empty: all
	Limit     int     // entries; 0: as the settings say
	MaxTokens int     // of the whole answer; 0: as the settings say
	MinFloor  float64 // 0: as the settings say
	Anywhere  bool    // entries of all projects of this user
}

// Recalled is what came back.
type Recalled struct {
	// Knowledge is the entries, each in an element that it cannot end.
	Knowledge string `json:"knowledge,omitempty"`
	Count     int    `json:"count"`
	LeftOut   int    `json:"left_out,omitempty"` // for which there was no room
	Refused   int    `json:"refused,omitempty"`  // whose signature is not this user's, or not over what is there
	How       string `json:"how,omitempty"`      // by words, by vectors, or both
	Note      string `json:"note,omitempty"`

	Entries []Entry `json:"-"`
}

// Filter says which entries are listed.
type Filter struct {
	Kinds    []Kind
	Text     string // words that all must be in an entry
	History  bool   // also what was superseded
	Anywhere bool
	Limit    int    // 0: no limit
	After    string // key
}

// Listed are entries, oldest first.
type Listed struct {
	Entries []Entry
	Refused int
	More    bool
}

// Forgotten says what became of an entry that was to be forgotten.
type Forgotten struct {
	Key string `json:"key"`
	// Others have said the same: the entry stays, as theirs.
	Others  int      `json:"others,omitempty"`
	Revived []string `json:"revived,omitempty"` // entries whose place it had taken
}
