package store

import (
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Stats sums up the rows of all threads.
type Stats struct {
	Threads   int
	Active    int // used since a day
	AvgTokens float64
	MaxTokens int64
	Spend     thread.Micros // of the threads created since a day
}

// StatsSince are the days, of UTC, that [Stats] count from; the hour does not matter.
type StatsSince struct {
	Used    time.Time
	Created time.Time
}
