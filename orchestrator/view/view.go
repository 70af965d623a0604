// Package view shows threads: how they stand, what they have said, used and returned,
// and what they wait to be told. To look settles a thread whose process is gone, and
// changes nothing else.
package view

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// View shows the threads of a project.
type View struct {
	Threads *threads.Threads
	// Daily tells how the money of today stands, or nil where nothing bounds it; it may
	// be nil itself.
	Daily func(context.Context) (*DailySpend, error)
	// ItemsWait says what the items of a set wait for; empty: for their turn alone.
	ItemsWait func(context.Context, thread.Record) string

	timelines timelines
}
