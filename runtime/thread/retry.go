package thread

import (
	"hash/fnv"
	"math"
	"slices"
	"time"
)

// RetryPolicy says which failed threads of a directive are tried again, how often and
// when. An attempt is a thread that continues the one before; the calls of a model that
// one thread repeats are no attempts.
type RetryPolicy struct {
	Attempts int    `json:"attempts"` // in all, with the first; 1 to [MaxAttempts]
	Backoff  string `json:"backoff"`  // one of [Backoffs]
	// BaseSeconds is the wait before the second attempt; it doubles with each further one
	// up to MaxSeconds where Backoff is exponential, and stays where it is fixed.
	BaseSeconds float64  `json:"base_seconds"`
	MaxSeconds  float64  `json:"max_seconds,omitempty"`
	On          []string `json:"on"` // of [RetryClasses]
}

// The bounds of a retry policy.
const (
	MaxAttempts = 20
	MaxRetryGap = 24 * time.Hour
)

// How the wait between two attempts grows.
const (
	BackoffExponential = "exponential"
	BackoffFixed       = "fixed"
)

// Backoffs lists them.
func Backoffs() []string { return []string{BackoffExponential, BackoffFixed} }

// The failures that a thread can be tried again after. A thread that was cancelled, has
// hit a limit or lacks a right is never tried again: it would end the same way.
const (
	RetryProvider = "provider" // its model could not be asked, for a reason that passes
	RetryCrash    = "crash"    // its process died, or the store was away
	RetryReturned = "returned" // it has returned an error itself
)

// RetryClasses lists them.
func RetryClasses() []string { return []string{RetryProvider, RetryCrash, RetryReturned} }

// CodeReturned is the [Problem.Code] of a thread that has returned an error itself.
const CodeReturned = "returned_error"

// Retry says of a failed thread that another is to continue it, and when.
type Retry struct {
	At       time.Time `json:"at" jsonschema:"when it is tried again"`
	Attempt  int       `json:"attempt" jsonschema:"which attempt that is; the first thread was 1"`
	Attempts int       `json:"attempts" jsonschema:"how many there may be"`
}

// classOf is what a thread has failed by; empty for what is never tried again.
func (p *Problem) classOf() string {
	switch {
	case p == nil:
		return ""
	case p.Code == CodeDied, p.Code == CodeStoreAway:
		return RetryCrash
	case p.Code == CodeReturned:
		return RetryReturned
	case p.Passing:
		return RetryProvider
	}
	return ""
}

// RetryOf is when a thread is tried again that has ended so, at that time; nil: it is not.
func (m Meta) RetryOf(o Outcome, cost Cost, at time.Time) *Retry {
	next := m.AttemptNow() + 1
	switch p := m.Retry; {
	case p == nil, o.State != Error, next > min(p.Attempts, MaxAttempts), cost.Spend >= m.Limits.Spend:
	case slices.Contains(p.On, o.Error.classOf()):
		wait := p.wait(next, m.ThreadID)
		return &Retry{At: at.Add(wait).UTC().Truncate(time.Millisecond), Attempt: next, Attempts: p.Attempts}
	}
	return nil
}

// AttemptNow is the attempt that the thread is, from 1.
func (m Meta) AttemptNow() int { return max(1, m.Attempt) }

// wait is the time before an attempt. An exponential one lies between half of
// min(base * 2^n, max) and all of it, by the id of the thread: those that fail together
// do not come back together, and settling a thread twice comes to the same.
func (p *RetryPolicy) wait(attempt int, id ID) time.Duration {
	seconds := p.BaseSeconds
	if p.Backoff == BackoffExponential {
		most := min(p.BaseSeconds*math.Exp2(float64(min(attempt, MaxAttempts)-2)), p.MaxSeconds)
		h := fnv.New64a()
		_, _ = h.Write([]byte(id))
		seconds = most/2 + most/2*float64(h.Sum64()>>11)/(1<<53)
	}
	if !(seconds >= 0) { // NaN too: a policy that was read is checked, this holds whatever it says
		seconds = 0
	}
	return time.Duration(min(seconds, MaxRetryGap.Seconds()) * float64(time.Second))
}

// RetryCancelled is [Record.RetryNote] of a thread that was cancelled before it was tried again.
const RetryCancelled = "cancelled"

// AwaitsRetry reports whether a failed thread is to be continued by another attempt.
// It has ended, and what it was started for has not.
func (r Record) AwaitsRetry() bool { return !r.RetryAt.IsZero() }

// Over reports whether a thread has ended and nothing is to be tried again for it.
func (r Record) Over() bool { return r.Status.Terminal() && !r.AwaitsRetry() }
