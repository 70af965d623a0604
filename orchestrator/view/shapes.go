package view

import (
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Started is the answer to a fork: the thread as it stands when the answer is
// given.
type Started struct {
	Success          bool           `json:"success" jsonschema:"true unless the thread has failed or was cancelled"`
	Code             string         `json:"code,omitempty" jsonschema:"of the failure"`
	ThreadID         thread.ID      `json:"thread_id" jsonschema:"id for every later call about this thread"`
	ResolvedThreadID thread.ID      `json:"resolved_thread_id,omitempty" jsonschema:"the thread that continues it; status, result and cost are its"`
	Directive        string         `json:"directive" jsonschema:"item id of the directive, or of the tool for a tool run"`
	Status           thread.State   `json:"status" jsonschema:"created or running while it works; completed, error, cancelled or continued afterwards"`
	Cost             thread.Cost    `json:"cost" jsonschema:"used so far"`
	ChainCost        *thread.Cost   `json:"chain_cost,omitempty" jsonschema:"of all threads of the chain"`
	TreeSpend        *thread.Micros `json:"tree_spend,omitempty" jsonschema:"US dollars, with everything below it, where that has spent some"`
	PID              int            `json:"pid,omitempty" jsonschema:"process id while it works"`
	Queued           bool           `json:"queued,omitempty" jsonschema:"is queued"`
	Existing         bool           `json:"existing,omitempty" jsonschema:"true when request_key named this thread already"`
	Waiting          []Waiting      `json:"waiting,omitempty" jsonschema:"open questions, here and below"`
	Next             string         `json:"next,omitempty" jsonschema:"what to call next"`
	End
}

// End is how a thread has ended, as a part of answers.
type End struct {
	Error    string          `json:"error,omitempty" jsonschema:"why it did not complete"`
	Problem  *thread.Problem `json:"problem,omitempty" jsonschema:"the same with code and circumstances"`
	Warnings []string        `json:"warnings,omitempty"`
	Outputs  map[string]any  `json:"outputs,omitempty" jsonschema:"the directive's declared outputs"`
	Result   string          `json:"result,omitempty" jsonschema:"final text"`
	Data     any             `json:"data,omitempty" jsonschema:"what a tool run returned"`
	Changes  *thread.Changes `json:"changes,omitempty" jsonschema:"in the thread's workspace: diff_thread shows, apply_thread applies them"`
	// Retry is of a failed thread that is tried again: the work that was started goes on.
	Retry *thread.Retry `json:"retry,omitempty" jsonschema:"it has failed and is tried again: not over"`
	// NotRetried says why that was given up.
	NotRetried string `json:"not_retried,omitempty" jsonschema:"why it was not tried again"`
}

// endOf is empty for a thread that has not ended.
func endOf(rec thread.Record) (e End) {
	o := rec.Outcome
	if o == nil {
		return e
	}
	e.Retry, e.NotRetried = retryOf(rec), rec.RetryNote
	e.Result, e.Outputs, e.Warnings, e.Changes = o.Result, o.Outputs, warningsOf(rec), o.Changes
	e.Error, e.Problem = problemOf(o)
	if len(o.Data) > 0 {
		e.Data = o.Data
	}
	return e
}

// warningsOf are those of a thread's end. One that has completed although its row has a
// cancel says why that is no contradiction.
func warningsOf(rec thread.Record) []string {
	if rec.Status != thread.Completed || rec.CancelRequestedAt.IsZero() {
		return rec.Outcome.Warnings
	}
	by := ""
	if who := rec.CancelledBy(); who != "" {
		by = " by " + who
	}
	return append(slices.Clone(rec.Outcome.Warnings), "a cancel"+by+" came too late: the work was complete")
}

// Result is what is told about one thread by waits and aggregations.
type Result struct {
	Status           thread.State   `json:"status" jsonschema:"state of the thread, or not_found"`
	ResolvedThreadID thread.ID      `json:"resolved_thread_id,omitempty" jsonschema:"the thread that continues it"`
	Queued           bool           `json:"queued,omitempty" jsonschema:"is queued"`
	Cost             thread.Cost    `json:"cost"`
	ChainCost        *thread.Cost   `json:"chain_cost,omitempty" jsonschema:"of all threads of the chain"`
	TreeSpend        *thread.Micros `json:"tree_spend,omitempty" jsonschema:"US dollars, with everything below it, where that has spent some"`
	Nearest          []thread.ID    `json:"nearest_ids,omitempty" jsonschema:"where there is no such thread"`
	End
}

// WaitResult is the answer to wait_threads.
type WaitResult struct {
	Success        bool                       `json:"success" jsonschema:"true when all (mode any: one) completed"`
	Mode           string                     `json:"mode"`
	Pending        []thread.ID                `json:"pending" jsonschema:"still working"`
	States         map[thread.ID]thread.State `json:"states,omitempty"`
	ElapsedSeconds float64                    `json:"elapsed_seconds"`
	Waiting        []Waiting                  `json:"waiting,omitempty" jsonschema:"open questions, here and below"`
	Suspended      map[thread.ID]int          `json:"suspended,omitempty"`
	NoWorker       map[thread.ID]string       `json:"no_worker,omitempty" jsonschema:"of queued threads: why no worker takes them"`
	Next           string                     `json:"next,omitempty" jsonschema:"what to call next"`
	Results        map[thread.ID]Result       `json:"results" jsonschema:"by asked thread id"`
}

// Aggregate is the answer to aggregate_results.
type Aggregate struct {
	Success bool                       `json:"success" jsonschema:"true when all completed"`
	Totals  Totals                     `json:"totals"`
	States  map[thread.ID]thread.State `json:"states,omitempty"`
	Results map[thread.ID]Result       `json:"results" jsonschema:"by asked thread id"`
}

// Totals sums threads.
type Totals struct {
	Threads   int                  `json:"threads" jsonschema:"threads named, those that continue others counted once"`
	ByStatus  map[thread.State]int `json:"by_status"`
	Cost      thread.Cost          `json:"cost" jsonschema:"own cost of the named threads and of those they continue"`
	TreeSpend thread.Micros        `json:"tree_spend" jsonschema:"US dollars spent by the named threads, those they continue and everything below them, each thread counted once"`
}

// Status is the answer to get_status.
type Status struct {
	Success          bool            `json:"success"`
	ThreadID         thread.ID       `json:"thread_id"`
	ResolvedThreadID thread.ID       `json:"resolved_thread_id,omitempty" jsonschema:"the thread that continues it; all below is about that one"`
	Status           thread.State    `json:"status"`
	Directive        string          `json:"directive"`
	Name             string          `json:"name"`
	ParentID         thread.ID       `json:"parent_id,omitempty"`
	Model            string          `json:"model"`
	Limits           *thread.Limits  `json:"limits,omitempty"`
	Cost             thread.Cost     `json:"cost"`
	ChainCost        *thread.Cost    `json:"chain_cost,omitempty" jsonschema:"of all threads of the chain"`
	Budget           *Budget         `json:"budget,omitempty" jsonschema:"money of the thread and everything below it"`
	Queued           bool            `json:"queued,omitempty" jsonschema:"is queued"`
	NoWorker         string          `json:"no_worker,omitempty" jsonschema:"of a queued thread: why no worker takes it"`
	ItemsWait        string          `json:"items_wait,omitempty" jsonschema:"of a set: why none of its items starts"`
	Worker           string          `json:"worker,omitempty" jsonschema:"the worker that runs it, or ran it last"`
	Snapshot         string          `json:"snapshot,omitempty" jsonschema:"of the items it works by"`
	CancelRequested  bool            `json:"cancel_requested,omitempty"`
	CreatedAt        time.Time       `json:"created_at"`
	UpdatedAt        time.Time       `json:"updated_at"`
	ElapsedSeconds   float64         `json:"elapsed_seconds"`
	LastEvent        string          `json:"last_event,omitempty" jsonschema:"newest kind of event in the transcript"`
	TokenCount       int64           `json:"token_count,omitempty" jsonschema:"in its context at the last report"`
	Metadata         tool.Object     `json:"metadata,omitempty" jsonschema:"what was noted of it"`
	Unread           int             `json:"unread_messages,omitempty" jsonschema:"messages to it that it has not read"`
	Children         []thread.ID     `json:"children,omitempty" jsonschema:"newest first, those of the threads it continues too"`
	Waiting          []Waiting       `json:"waiting,omitempty" jsonschema:"open questions, here and below"`
	Retry            *thread.Retry   `json:"retry,omitempty" jsonschema:"it has failed and is tried again: not over"`
	NotRetried       string          `json:"not_retried,omitempty" jsonschema:"why it was not tried again"`
	Error            string          `json:"error,omitempty" jsonschema:"why it did not complete"`
	Problem          *thread.Problem `json:"problem,omitempty" jsonschema:"the same with code and circumstances"`
	LastText         string          `json:"last_text,omitempty" jsonschema:"last words the model wrote"`
	Warnings         []string        `json:"warnings,omitempty" jsonschema:"of its start, then of what went wrong later"`
	Changes          *thread.Changes `json:"changes,omitempty" jsonschema:"in its workspace: diff_thread shows, apply_thread applies them"`
}

// Summary is one thread of a list.
type Summary struct {
	ThreadID       thread.ID    `json:"thread_id"`
	Kind           thread.Kind  `json:"kind"`
	Status         thread.State `json:"status"`
	Directive      string       `json:"directive"`
	Name           string       `json:"name"`
	ParentID       thread.ID    `json:"parent_id,omitempty"`
	Asks           bool         `json:"asks,omitempty" jsonschema:"it waits for an answer; get_status has the question"`
	ContinuationOf thread.ID    `json:"continuation_of,omitempty" jsonschema:"the thread that it continues"`
	Model          string       `json:"model,omitempty"`
	Cost           thread.Cost  `json:"cost"`
	Queued         bool         `json:"queued,omitempty" jsonschema:"is queued"`
	Worker         string       `json:"worker,omitempty" jsonschema:"the worker that runs it, or ran it last"`
	Unread         int          `json:"unread_messages,omitempty"`
	RetryAt        time.Time    `json:"retry_at,omitzero" jsonschema:"it has failed and is tried again then"`
	Error          string       `json:"error,omitempty" jsonschema:"why it did not complete"`
	CreatedAt      time.Time    `json:"created_at"`
	UpdatedAt      time.Time    `json:"updated_at"`
	LastUsed       time.Time    `json:"last_used,omitzero"`
	TokenCount     int64        `json:"token_count,omitempty" jsonschema:"in its context at the last report"`
	Metadata       tool.Object  `json:"metadata,omitempty" jsonschema:"what was noted of it"`
}

// List is the answer to list_active and list_threads.
type List struct {
	Success    bool      `json:"success"`
	Count      int       `json:"count"`
	NextCursor string    `json:"next_cursor,omitempty" jsonschema:"give it back to get the next page"`
	Partial    bool      `json:"partial,omitempty" jsonschema:"only looked_at threads were compared with query for this page, and there are more: go on with next_cursor"`
	LookedAt   int       `json:"looked_at,omitempty"`
	Threads    []Summary `json:"threads" jsonschema:"newest first, or as sorted"`
}
