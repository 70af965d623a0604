package handoff

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The inputs that a thread has which continues another, beside those of the
// thread before; hooks and templates use them.
const (
	InputPreviousThread  = "previous_thread_id"
	InputPreviousSummary = "previous_summary_id" // where there is a summary
)

// Request is what a running thread hands over to its successor.
type Request struct {
	ThreadID thread.ID
	// Used is what the thread has used of its limits; the successor gets the rest.
	Used Used
	// Ceiling is how many tokens the conversation of the successor may begin with,
	// its own prompt left out.
	Ceiling int64
	// SummaryID names the summary of the thread's work, below agent/threads/ of the
	// knowledge; Summary is its text. Both are empty when there is none.
	SummaryID string
	Summary   string
	// Task is the directive as its model was told it, for the manifest.
	Task string
	// Secrets are the values of the secret inputs, which are handed to the
	// successor's process alone.
	Secrets map[string]string
}

// Used is what of its limits a thread has used up.
type Used struct {
	Turns   int
	Tokens  int64
	Seconds float64
}

// Successor is a thread that is ready to continue another, and does nothing yet.
// Exactly one of Start and GiveUp is called.
type Successor interface {
	// Handoff is what the outcome of the thread before says.
	Handoff() thread.Handoff
	// Start starts its process; the thread before has ended as continued.
	Start(ctx context.Context) error
	// GiveUp ends it, because the thread before could not end as continued.
	GiveUp(ctx context.Context, cause error)
}

// Maker makes successors.
type Maker interface {
	// MakeSuccessor registers the successor of a running thread, writes down what it begins
	// with, and moves the thread's reservation to it. When it fails the thread has its
	// reservation still, and the successor has ended, unless that was the last write:
	// then the thread cannot go on. A chain that is too long is a *ChainError.
	MakeSuccessor(ctx context.Context, r Request) (Successor, error)
}
