// Package costs tells what the threads of a project have used: by directive, by model, by
// day, and over time.
//
// Each thread counts with what it has used itself, so that the sum of all is what all
// have cost. It counts when and under the model with which it was started, unless the
// answer is to be exact: then every call of a model counts when it was made and as what
// was asked, which is read from the transcripts.
package costs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// By is what costs are told apart by.
type By string

// The ways to tell costs apart; All is of OverTime only, Day of Table only.
const (
	All       By = ""
	Directive By = "directive"
	Model     By = "model"
	Day       By = "day"
)

// Keys of what has no name.
const (
	NoModel = "(no model)" // runs of tools
	Deleted = "(deleted)"  // of which nobody knows any more what they were
	Others  = "(others)"   // those for which there is no row
)

// Bucket is a stretch of time of which there is one number.
type Bucket string

// The buckets; weeks begin on Monday.
const (
	Hours Bucket = "hour"
	Days  Bucket = "day"
	Weeks Bucket = "week"
)

// Request says what is asked for.
type Request struct {
	By By
	// Since and Until bound the time: how long ago ("30d", "12h"), a day ("2026-03-01"), or
	// RFC 3339. Since: empty is 30 days before Until, or ago, "all" the beginning; Until, which
	// is not part of it, empty: now.
	Since, Until string
	Bucket       Bucket // of OverTime; empty: chosen by the length of time
	Exact        bool
	Zone         *time.Location // whose days are meant; nil: UTC
}

// Use is what some threads have used.
type Use struct {
	Threads   int `json:"threads"`
	Deleted   int `json:"deleted,omitempty"` // of those, that were deleted since
	Errors    int `json:"errors"`            // threads that ended in error
	Cancelled int `json:"cancelled"`
	thread.Cost
}

func (u *Use) add(o Use) {
	u.Threads += o.Threads
	u.Deleted += o.Deleted
	u.Errors += o.Errors
	u.Cancelled += o.Cancelled
	u.Cost = u.Add(o.Cost)
}

// Row is what has one key in common: a directive, a model as provider/model, or a day
// as 2026-03-01.
type Row struct {
	Key string `json:"key"`
	Use
}

// Range is the time that an answer is about.
type Range struct {
	By    By         `json:"by"`
	Since *time.Time `json:"since,omitempty"` // left out: from the beginning
	Until time.Time  `json:"until"`
	Exact bool       `json:"exact"`
	// Covers says in a sentence what the numbers are.
	Covers string `json:"covers"`
}

// Table is what was used by what.
type Table struct {
	Range
	Rows   []Row `json:"rows"`             // the dearest first; days in their order
	Others int   `json:"others,omitempty"` // how many keys stand together in the last row, for want of room
	Total  Use   `json:"total"`
}

// Series is what was used when. Each list has one number for each of At.
type Series struct {
	Range
	Bucket Bucket      `json:"bucket"`
	At     []time.Time `json:"at"`    // beginnings of the buckets, in the zone that was asked for
	Lines  []Line      `json:"lines"` // the dearest first
	Total  Line        `json:"total"`
}

// Line is what one key has used over time.
type Line struct {
	Key     string          `json:"key"`
	Spend   []thread.Micros `json:"spend"`
	Tokens  []int64         `json:"tokens"`
	Turns   []int           `json:"turns"`
	Errors  []int           `json:"errors"`
	Threads []int           `json:"threads"`
}

const (
	maxRows    = 200
	maxLines   = 12
	maxBuckets = 1000
	// maxExact is how many threads' transcripts are read for one answer: some seconds.
	maxExact = 2000
)

// Costs answers for a project.
type Costs struct{ Threads *threads.Threads }

// Table tells what was used by directive, by model or by day.
func (c *Costs) Table(ctx context.Context, req Request) (Table, error) {
	if req.By != Directive && req.By != Model && req.By != Day {
		return Table{}, badRequest("by", string(req.By), "directive, model or day")
	}
	a, err := c.gather(ctx, req, Days, req.By == Day)
	if err != nil {
		return Table{}, err
	}
	t := Table{Range: a.told(), Rows: []Row{}, Total: a.total()}
	for _, key := range a.keys() {
		t.Rows = append(t.Rows, Row{key, a.sums[key].total()})
	}
	if req.By == Day {
		slices.SortFunc(t.Rows, func(x, y Row) int { return strings.Compare(x.Key, y.Key) })
	}
	if more := len(t.Rows) - maxRows; more > 0 {
		t.Others = more + 1
		at := maxRows - 1
		if req.By == Day { // the oldest stand together
			slices.Reverse(t.Rows)
		}
		rest := Row{Key: Others}
		for _, r := range t.Rows[at:] {
			rest.add(r.Use)
		}
		t.Rows = append(t.Rows[:at], rest)
		if req.By == Day {
			slices.Reverse(t.Rows)
		}
	}
	return t, nil
}

// OverTime tells what was used in each stretch of time.
func (c *Costs) OverTime(ctx context.Context, req Request) (Series, error) {
	if req.By != Directive && req.By != Model && req.By != All {
		return Series{}, badRequest("by", string(req.By), "directive, model or nothing")
	}
	if req.Bucket != "" && req.Bucket != Hours && req.Bucket != Days && req.Bucket != Weeks {
		return Series{}, badRequest("bucket", string(req.Bucket), "hour, day or week")
	}
	a, err := c.gather(ctx, req, req.Bucket, true)
	if err != nil {
		return Series{}, err
	}
	s := Series{Range: a.told(), Bucket: a.bucket, Lines: []Line{}}
	if s.At, err = a.buckets(); err != nil {
		return Series{}, err
	}
	keys := a.keys()
	for _, key := range keys[:min(len(keys), maxLines)] {
		s.Lines = append(s.Lines, a.line(key, s.At, key))
	}
	if len(keys) > maxLines {
		s.Lines[maxLines-1] = a.line(Others, s.At, keys[maxLines-1:]...)
	}
	s.Total = a.line("", s.At, keys...)
	return s, nil
}

// examples are values of the flags that people give.
var examples = map[string]string{"bucket": "day", "by": "model", "since": "30d", "until": "2026-03-01"}

func badRequest(what, got, valid string) error {
	return tool.Faultf(tool.CodeBadArguments, "%s %q is not known; it is %s", what, got, valid).WithTry("--%s %s", what, examples[what])
}

// gather reads what there is in the time that is asked for.
func (c *Costs) gather(ctx context.Context, req Request, bucket Bucket, overTime bool) (*account, error) {
	a, err := newAccount(req, c.Threads.Now())
	if err != nil {
		return nil, err
	}
	if a.bucket = bucket; bucket == "" {
		a.bucket = a.fittingBucket()
	}
	q := store.CostQuery{By: store.CostKey(req.By), Since: a.since, Until: a.until}
	if req.By == Day {
		q.By = store.CostOfAll
	}
	if overTime {
		q.Slot = a.slot()
	}
	sums, err := c.Threads.Store.Costs(ctx, q)
	if err != nil {
		return nil, threads.Fault(err)
	}
	for _, s := range sums {
		if !req.Exact || s.Gone {
			a.sum(s)
		}
	}
	if req.Exact {
		err = c.exactly(ctx, a)
	}
	return a, err
}

// parseTime reads a bound of the time.
func parseTime(what, text string, now time.Time, zone *time.Location) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return thread.StartOfDay(day.Year(), day.Month(), day.Day(), zone), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	age, err := tidy.ParseAge(text)
	if err != nil {
		return time.Time{}, badRequest(what, text, `how long ago, such as 30d or 12h, a day such as 2026-03-01, or a time as RFC 3339 has it`)
	}
	return now.Add(-age), nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
