package store

import (
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Stats sums up the rows of all threads.
type Stats struct {
	Threads   int
	Active    int // used since a time
	AvgTokens float64
	MaxTokens int64
	Spend     thread.Micros // of the threads created since a time
}

// StatsSince are the times that [Stats] count from.
type StatsSince struct {
	Used    time.Time
	Created time.Time
}
