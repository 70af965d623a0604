// Package fanout starts one directive for a list of items, as a set that is stored: what
// has completed is not paid for twice.
//
// A set is a thread of kind set, see [store.Sets]. It has no process, so nothing of it
// has to live: any process of the project starts the entries that are next
// ([Mapper.Advance], where the queue is moved too), and whoever finds that none waits or
// works settles the set. Its reservation is that of its row; the threads of its
// entries, which are its children, take theirs from it.
package fanout

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// Mapper starts sets, and their entries.
type Mapper struct {
	Project string // absolute path of the project
	Threads *threads.Threads
	Planner *plan.Planner
	Queue   *scheduler.Scheduler
}

// Request asks for a directive to be run for each item of a list.
type Request struct {
	Directive   string
	Items       []map[string]any // the inputs of each thread
	Concurrency int              // how many work at the same time; 0: [DefaultConcurrency]
	// RequestKey names the set: the same key with other items is refused. Without one,
	// items are known by what they are.
	RequestKey string
	Model      string         // as of a start; empty: the directive's choice
	MaxSpend   *thread.Micros // of the whole set; nil: what its threads may spend together
}

// Bounds of a call.
const (
	DefaultConcurrency = 8
	MaxConcurrency     = 256
	MaxItems           = 1000
	maxItemBytes       = 4 << 20 // of all inputs together
)

// Opened is a set that a call is about.
type Opened struct {
	ID       thread.ID
	Existing bool // it was there before
}

// Open starts the set of a call, or finds the one that there is: one that works, or one
// that has ended and has all results that a new one would have. Everything that can be
// wrong with the call or with an item is refused before anything starts.
func (m *Mapper) Open(ctx context.Context, now *settings.Call, caller action.Caller, req Request) (Opened, error) {
	c, err := m.check(ctx, now, caller, req)
	if err != nil {
		return Opened{}, err
	}
	before, found, err := m.find(ctx, c)
	if err != nil || found {
		return Opened{ID: before, Existing: found}, threadsFault(err)
	}
	if err := m.confirm(ctx, now, c); err != nil {
		return Opened{}, err
	}
	for range maxGenerations {
		opened, err := m.register(ctx, now, c, before)
		if err != nil || !opened.Existing {
			return opened, err
		}
		// Somebody was faster, and works; or has died before there were entries.
		if _, err := m.Threads.Store.Set(ctx, opened.ID); !errors.Is(err, store.ErrNoSet) {
			return opened, threadsFault(err)
		}
		rec, err := m.Threads.Examine(ctx, opened.ID)
		if err != nil || !rec.Status.Terminal() {
			return opened, threadsFault(err)
		}
		before = opened.ID
	}
	return Opened{}, fmt.Errorf("set of %s: %d starters have died", c.first().Found.ID, maxGenerations)
}

// maxGenerations bounds the sets of one call whose starters have died before they had
// entries.
const maxGenerations = 100

// threadsFault is [threads.Fault], of no error too.
func threadsFault(err error) error {
	if err == nil {
		return nil
	}
	return threads.Fault(err)
}

// find returns the set that there is for a call; or, where it has ended and something is
// to be run, that one as the one before.
func (m *Mapper) find(ctx context.Context, c *call) (last thread.ID, found bool, err error) {
	content := c.content
	if c.keyed {
		content = "" // a key is one call's
	}
	set, err := m.Threads.Store.LastSet(ctx, c.scope, content)
	if errors.Is(err, store.ErrNoSet) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if set.Content != c.content {
		return "", false, fmt.Errorf("%w: set %s, which was started with another directive, model or list of items", store.ErrKeyReused, set.ID)
	}
	rec, err := m.Threads.Examine(ctx, set.ID)
	if err != nil || !rec.Status.Terminal() {
		return set.ID, err == nil, err
	}
	entries, err := m.Threads.Store.Entries(ctx, set.ID, 0, MaxItems)
	if err != nil {
		return "", false, err
	}
	for i, e := range entries {
		if e.Status != thread.Completed || e.Key != c.entries[i].Key {
			return set.ID, false, nil
		}
	}
	return set.ID, true, nil
}

// confirm asks what a start asks, once for all items.
func (m *Mapper) confirm(ctx context.Context, now *settings.Call, c *call) error {
	if err := m.Planner.In(now).ConfirmRisk(ctx, c.first()); err != nil {
		return err
	}
	if err := m.Planner.In(now).HaveKey(ctx, c.first()); err != nil {
		return err
	}
	return m.Planner.In(now).TakeItems(ctx, c.first())
}
