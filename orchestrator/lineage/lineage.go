// Package lineage holds the rules of parents, children and chains as pure
// functions over rows.
//
// A chain is the threads that do one piece of work, one after the other: each
// but the first continues the one before it, which has handed over or was
// resumed. The threads that a thread has started stay below those that continue it.
package lineage

import (
	"errors"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Get returns the row of a thread; it is how the rules look at the registry.
type Get func(thread.ID) (thread.Record, error)

// Resolve follows a chain from a thread to the one that continues it now, which
// is the thread itself when there is no other. A chain that runs in a circle,
// which only a damaged registry can have, ends where it closes.
func Resolve(id thread.ID, get Get) (thread.Record, error) {
	rec, err := get(id)
	if err != nil {
		return thread.Record{}, err
	}
	later, err := after(rec, get)
	if err != nil {
		return thread.Record{}, err
	}
	if len(later) > 0 {
		rec = later[len(later)-1]
	}
	return rec, nil
}

// Chain returns the whole chain of a thread, first to newest, whichever of it the
// thread is. One that was to continue another and never came to it is the last of
// its chain as it sees it, and in nobody else's. A thread that there is no row of
// any more begins the chain after it.
func Chain(id thread.ID, get Get) ([]thread.Record, error) {
	rec, err := get(id)
	if err != nil {
		return nil, err
	}
	earlier, err := before(rec, get)
	if err != nil {
		return nil, err
	}
	later, err := after(rec, get)
	if err != nil {
		return nil, err
	}
	seen := map[thread.ID]bool{}
	return slices.DeleteFunc(slices.Concat(earlier, []thread.Record{rec}, later), func(r thread.Record) bool {
		again := seen[r.ThreadID] // in a circle
		seen[r.ThreadID] = true
		return again
	}), nil
}

// Linked is the end of a chain in which each thread names the one that continues it
// . A thread that was to continue another and never came to it is alone.
func Linked(chain []thread.Record) []thread.Record {
	for i := len(chain) - 1; i > 0; i-- {
		if chain[i-1].ContinuationThreadID != chain[i].ThreadID {
			return chain[i:]
		}
	}
	return chain
}

// after returns what continues a thread, in order.
func after(rec thread.Record, get Get) (later []thread.Record, err error) {
	seen := map[thread.ID]bool{rec.ThreadID: true}
	for next := rec.ContinuationThreadID; next != "" && !seen[next]; next = rec.ContinuationThreadID {
		seen[next] = true
		if rec, err = get(next); err != nil {
			return nil, err
		}
		later = append(later, rec)
	}
	return later, nil
}

// before returns what a thread continues, first to last.
func before(rec thread.Record, get Get) (earlier []thread.Record, err error) {
	seen := map[thread.ID]bool{rec.ThreadID: true}
	for id := rec.ContinuationOf; id != "" && !seen[id]; id = rec.ContinuationOf {
		seen[id] = true
		if rec, err = get(id); errors.Is(err, thread.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		earlier = append(earlier, rec)
	}
	slices.Reverse(earlier)
	return earlier, nil
}

// IsBelow reports whether descendant is a child of ancestor, or of one that it
// continues, at any depth.
func IsBelow(descendant, ancestor thread.ID, get Get) (bool, error) {
	return IsBelowAny(descendant, func(id thread.ID) bool { return id == ancestor }, get)
}

// IsBelowAny reports whether a thread is a child, at any depth, of one that is
// asked for, or of one that such a thread continues.
func IsBelowAny(descendant thread.ID, asked func(thread.ID) bool, get Get) (bool, error) {
	seen := map[thread.ID]bool{}
	rec, err := get(descendant)
	for err == nil && rec.ParentID != "" && !seen[rec.ThreadID] {
		seen[rec.ThreadID] = true
		if asked(rec.ParentID) {
			return true, nil
		}
		if rec, err = get(rec.ParentID); err != nil {
			return false, err
		}
		later, err := after(rec, get)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(later, func(r thread.Record) bool { return asked(r.ThreadID) }) {
			return true, nil
		}
	}
	return false, err
}

// DeepestFirst orders threads and their descendants into levels, the deepest
// first, so that children are stopped before their parents. Rows whose parent
// is not among them form the top level.
func DeepestFirst(rows []thread.Record) [][]thread.Record {
	parent := make(map[thread.ID]thread.ID, len(rows))
	for _, r := range rows {
		parent[r.ThreadID] = r.ParentID
	}
	depth := func(id thread.ID) int {
		d := 0
		for p, ok := parent[id]; ok && d <= len(rows); p, ok = parent[p] {
			d++
		}
		return d
	}
	var levels [][]thread.Record
	for _, r := range rows {
		d := depth(r.ThreadID) - 1
		for len(levels) <= d {
			levels = append(levels, nil)
		}
		levels[d] = append(levels[d], r)
	}
	slices.Reverse(levels)
	return levels
}
