package thread

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Question is what a thread, or the start of one, has to be told by somebody
// before it goes on.
type Question struct {
	ID       string // UUID; empty for a question that is asked before there is a thread
	ThreadID ID
	Kind     QuestionKind
	Code     string // what it is about, such as turns_exceeded
	Reached  string // what was reached of the limit, in its unit; see [LimitError]
	Text     string // for whoever answers
	Options  []Decision
	Default  Decision // taken when nobody has answered in time
	// Limits are those of the thread, and Most what they can be raised to; nil
	// where nothing bounds them, or the question is not about limits.
	Limits, Most *Limits
	Proposal     *Proposal // of [AskHandoff]
	AskedAt      time.Time
	DeadlineAt   time.Time
	Answer       *Answer // nil while the question is open
}

// QuestionKind says what kind of thing is asked.
type QuestionKind string

// The kinds of question.
const (
	AskLimit QuestionKind = "limit" // a limit was hit
	AskRisk  QuestionKind = "risk"  // a directive declares a capability whose risk nobody has accepted
	AskHook  QuestionKind = "hook"  // a hook wants a person to decide; Code is its id
	// AskHandoff puts a handoff to somebody; Code is [HandoffFull] or [HandoffAsked].
	AskHandoff QuestionKind = "handoff"
)

// Why a thread proposes to hand over.
const (
	HandoffFull  = "context_window" // its conversation takes up the share of the settings
	HandoffAsked = "handoff_thread" // somebody has asked for it
)

// Proposal is what a thread would hand over, and what that costs.
type Proposal struct {
	Summary  string `json:"summary,omitempty"` // that its successor would be given; empty: there is none
	Tokens   int64  `json:"tokens"`            // in context
	Window   int64  `json:"window"`            // of the model
	Spend    Micros `json:"spend"`             // of the thread and what is below it, so far
	Left     Micros `json:"left"`              // that the successor would get
	Expected Micros `json:"expected"`          // of the successor's first call
	Turns    int    `json:"turns"`             // left, that the successor would get
	// Last says that the thread has no room for another turn.
	Last bool `json:"last,omitempty"`
}

// HandoffRequest asks a running thread to hand over after its turn.
type HandoffRequest struct {
	By      string // who asks, in words
	Summary string // what the successor is given in place of a summary; may be empty
	At      time.Time
}

// MaxSummary bounds the summary that somebody gives to a successor, in bytes.
const MaxSummary = 32 << 10

// ErrBadSummary is what a text is refused with that no successor is given.
var ErrBadSummary = errors.New("not a summary")

// CheckSummary refuses a text that is too long, or no text.
func CheckSummary(text string) error {
	switch {
	case len(text) > MaxSummary:
		return fmt.Errorf("%w: it has %d bytes; at most %d are taken", ErrBadSummary, len(text), MaxSummary)
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: it is not UTF-8", ErrBadSummary)
	}
	return nil
}

// Decision is one way to answer a question.
type Decision string

// The decisions. Raise, Finish and Stop answer [AskLimit]; Accept and Decline
// answer [AskRisk] and [AskHandoff]; GoOn and Stop answer [AskHook].
const (
	Raise   Decision = "raise"   // the thread goes on under new limits
	Finish  Decision = "finish"  // the thread has one last turn, to return what it has
	Stop    Decision = "stop"    // the limit, or what went wrong, ends the thread
	GoOn    Decision = "go_on"   // the thread goes on, and tries again what failed
	Accept  Decision = "accept"  // the thread may be started, or may hand over
	Decline Decision = "decline" // it may not
)

// Means says to whoever answers what follows from a decision about a question.
func (d Decision) Means(q Question) string {
	if q.Kind == AskHandoff {
		return d.meansToHandoff(q)
	}
	switch d {
	case Raise:
		return "go on under new limits"
	case Finish:
		return "one last turn to return what it has"
	case Stop:
		return "the limit, or what went wrong, ends it"
	case GoOn:
		return "go on, and try again what failed"
	case Accept:
		return "it may be started"
	case Decline:
		return "it may not be started"
	}
	return ""
}

// meansToHandoff is Means of a proposal to hand over.
func (d Decision) meansToHandoff(q Question) string {
	switch {
	case d == Accept:
		return "it hands over to a new thread"
	case q.Proposal != nil && q.Proposal.Last:
		return "it ends, as its conversation has no room for another turn"
	default:
		return "it goes on as far as its context window allows"
	}
}

// Answer is what somebody has decided.
type Answer struct {
	Decision Decision
	Summary  string             // of an Accept of a handoff: what the successor is given; empty: as proposed
	Limits   map[string]float64 // new values of a Raise, by canonical name; spend in dollars
	By       string             // who, in words
	At       time.Time
}
