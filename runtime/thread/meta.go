package thread

import (
	"encoding/json"
	"time"
)

// Meta is the content of a thread's thread.json: everything its process needs
// to run it again from disk, and everything a reader needs to know about it
// without the registry. The file is canonical JSON with an Ed25519 signature
// in "_signature" when the user has a signing key.
type Meta struct {
	Version       int    `json:"version"`
	Type          string `json:"type,omitempty"`  // so that no other signed document is taken for it
	Place         string `json:"place,omitempty"` // id of the place where the thread is at home
	ThreadID      ID     `json:"thread_id"`
	Kind          Kind   `json:"kind"`
	Directive     string `json:"directive"`
	DirectivePath string `json:"directive_path"` // where it was found
	DirectiveHash string `json:"directive_hash"` // SHA-256 of the file, hex
	Space         string `json:"space"`
	// Chain is what the directive extended when the thread was started, by its own
	// choice or that of a hook: nearest first, without the directive itself.
	Chain    []ChainLink `json:"extends_chain,omitempty"`
	Route    *Route      `json:"extends_hook,omitempty"` // nil: the directive's own choice
	ParentID ID          `json:"parent_id,omitempty"`
	// SettingsHash is of what the process is handed of the settings; empty: it reads
	// them itself. See config.HashDecided.
	SettingsHash string `json:"settings_hash,omitempty"`
	// Accepted says which settings of the project hold for it on every machine that may run
	// it; nil: it runs on this one alone.
	Accepted *Accepted `json:"accepted,omitempty"`
	// Snapshot names the items that the thread works by, see package snapshot: the
	// SHA-256 of a manifest, hex; empty: it uses each as it is then.
	Snapshot string `json:"snapshot,omitempty"`
	// Firing are the ids of the hooks by which the thread, or one above it, was
	// started, and which it must not fire again.
	Firing []string `json:"firing_hooks,omitempty"`
	// TraceID is the one of the request that started the thread; its log, its
	// tools and its children continue it.
	TraceID   string         `json:"trace_id,omitempty"`
	Status    State          `json:"status"`
	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
	Model     string         `json:"model"` // "provider/model"
	Inputs    map[string]any `json:"inputs"`
	Limits    Limits         `json:"limits"`
	// Capabilities are what the thread may do, as far as patterns can say it: what is
	// its own as far as every ancestor leaves it.
	Capabilities []string `json:"capabilities"`
	// Declared are its own capabilities where its ancestors leave less of them.
	Declared []string `json:"declared_capabilities,omitempty"`
	// Ceiling holds the capability sets of every ancestor, nearest first: a call
	// passes when the thread's own, see [Meta.Own], and each of them allow it.
	Ceiling        [][]string    `json:"capability_ceiling,omitempty"`
	ContinuationOf ID            `json:"continuation_of,omitempty"`
	ChainRootID    ID            `json:"chain_root_id,omitempty"`
	Continuation   *Continuation `json:"continuation,omitempty"` // nil: its conversation begins with it
	// Retry says when the thread is tried again should it fail; nil: never. Attempt is
	// which one it is, from 2; 0: the first.
	Retry      *RetryPolicy `json:"retry,omitempty"`
	Attempt    int          `json:"attempt,omitempty"`
	ForkedFrom *Fork        `json:"forked_from,omitempty"` // nil: it is no copy
	Imported   *Imported    `json:"imported,omitempty"`    // nil: it ran here
	// BeginsWith stands behind the task in the first message: what was said elsewhere, quoted.
	BeginsWith string `json:"begins_with,omitempty"`
	// Workspace is where the thread works; nil: in the project itself.
	Workspace  *Workspace      `json:"workspace,omitempty"`
	Cost       Cost            `json:"cost"`
	Outcome    *Outcome        `json:"outcome,omitempty"`
	Transcript *TranscriptHead `json:"transcript,omitempty"`
	Warnings   []string        `json:"warnings,omitempty"`
}

// Own are the capabilities that the thread holds itself, without regard to its
// ancestors.
func (m Meta) Own() []string {
	if m.Declared != nil {
		return m.Declared
	}
	return m.Capabilities
}

// Accepted are the settings of a project that its user had accepted where a thread was started.
type Accepted struct {
	Settings string `json:"settings,omitempty"` // SHA-256, hex; empty: nothing was accepted
	By       string `json:"by"`                 // names the machine and its user
}

// Fork says of which conversation a thread began with a copy.
type Fork struct {
	ThreadID ID `json:"thread_id"`
	// Turn is the last one of that thread that was copied; 0: all there was of it.
	Turn int `json:"turn,omitempty"`
}

// Imported says from which recording a thread was taken in. Such a thread can be looked
// at, and nothing goes on with it.
type Imported struct {
	Signer    string    `json:"signer"`          // fingerprint of the key that has signed the recording
	Owner     string    `json:"owner,omitempty"` // whose key that is, as far as it was known
	Recording string    `json:"recording"`       // SHA-256 of its manifest, hex
	At        time.Time `json:"at"`
}

// MetadataImported is the key of [Record.Metadata] that says the same.
const MetadataImported = "imported"

// Metadata is what the row of the thread says.
func (i Imported) Metadata() json.RawMessage {
	text, _ := json.Marshal(map[string]Imported{MetadataImported: i}) // strings and a time
	return text
}

// The keys of [Record.Metadata] that say the same as [Fork].
const (
	MetadataForkedFrom = "forked_from"
	MetadataForkedAt   = "forked_at_turn"
)

// Metadata is what the row of the copy says.
func (f Fork) Metadata() json.RawMessage {
	said := map[string]any{MetadataForkedFrom: f.ThreadID}
	if f.Turn > 0 {
		said[MetadataForkedAt] = f.Turn
	}
	text, _ := json.Marshal(said) // strings and numbers
	return text
}

// Continuation says how a thread came by the conversation that it begins with: it
// continues the thread that ContinuationOf names, or is a copy of ForkedFrom.
type Continuation struct {
	Via Via `json:"via"`
	// Position is the thread's place in its chain; the first one has 1.
	Position int `json:"position"`
	// Handoffs is how many there have been in the chain since a person's last
	// message, up to this thread; see [Continuation.HandoffsNow].
	Handoffs int `json:"handoffs,omitempty"`
	// Messages is how many messages of the conversation before are at the beginning
	// of the transcript; the next one is the thread's own first.
	Messages int `json:"messages"`
	// Message is what a person said to have the thread resumed, or begun as a copy, or that
	// it is another attempt; empty for a handoff.
	Message string `json:"message,omitempty"`
	// Children are the threads that those before have started and of whose end they
	// have not been told.
	Children []ID `json:"children,omitempty"`
	// SummaryID is the knowledge item that sums up what went before, below
	// agent/threads/; empty when nobody wrote one.
	SummaryID string `json:"summary_id,omitempty"`
	// Whole are the limits of which those of the thread are the rest; nil: it began with
	// limits of its own.
	Whole *Limits `json:"whole_limits,omitempty"`
}

// HandoffsNow is Handoffs, of a nil one too. A thread.json of before it was kept
// counts every thread of the chain.
func (c *Continuation) HandoffsNow() int {
	switch {
	case c == nil:
		return 0
	case c.Via == ViaHandoff && c.Handoffs == 0:
		return c.Position - 1
	}
	return c.Handoffs
}

// Via is how one thread comes to continue another.
type Via string

// The ways to go on with the conversation of a thread.
const (
	ViaHandoff Via = "handoff" // its context window was nearly full
	ViaResume  Via = "resume"  // it had ended, and somebody had a message for it
	ViaRetry   Via = "retry"   // it had failed, and its directive says <retry>
	ViaFork    Via = "fork"    // it goes on as it would have: this is a copy
)

// ChainLink is a directive that another one extends.
type ChainLink struct {
	Directive string `json:"directive"`
	Hash      string `json:"hash"` // SHA-256 of the file, hex
}

// Route is the resolve_extends hook that chose what a directive extends.
type Route struct {
	Hook   string `json:"hook_id"`
	Layer  int    `json:"layer"`
	Source string `json:"source"` // file:line
}

// Extends is the directive that the thread's own one extends, or empty.
func (m Meta) Extends() string {
	if len(m.Chain) == 0 {
		return ""
	}
	return m.Chain[0].Directive
}

// MetaVersion is the version of thread.json this binary writes.
const MetaVersion = 1

// TranscriptHead fixes the length of a finished transcript, so that one cut
// short or stripped of its checkpoints does not verify.
type TranscriptHead struct {
	Checkpoints int    `json:"checkpoints"`
	Bytes       int64  `json:"bytes"`
	Hash        string `json:"hash"` // SHA-256 of all bytes, hex
}
