package thread

import "time"

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
)

// Decision is one way to answer a question.
type Decision string

// The decisions. Raise, Finish and Stop answer [AskLimit]; Accept and Decline
// answer [AskRisk]; GoOn and Stop answer [AskHook].
const (
	Raise   Decision = "raise"   // the thread goes on under new limits
	Finish  Decision = "finish"  // the thread has one last turn, to return what it has
	Stop    Decision = "stop"    // the limit, or what went wrong, ends the thread
	GoOn    Decision = "go_on"   // the thread goes on, and tries again what failed
	Accept  Decision = "accept"  // the thread may be started
	Decline Decision = "decline" // it may not
)

// Means says to whoever answers what follows from a decision.
func (d Decision) Means() string {
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

// Answer is what somebody has decided.
type Answer struct {
	Decision Decision
	Limits   map[string]float64 // new values of a Raise, by canonical name; spend in dollars
	By       string             // who, in words
	At       time.Time
}
