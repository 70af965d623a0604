// Package lineage holds the rules of parents, children and chains as pure
// functions over rows.
package lineage

import (
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Get returns the row of a thread; it is how the rules look at the registry.
type Get func(thread.ID) (thread.Record, error)

// Resolve follows a chain from a thread to the one that carries it on now: the
// last that was not handed off. A chain that runs in a circle, which only a
// damaged registry can have, ends where it closes.
func Resolve(id thread.ID, get Get) (thread.Record, error) {
	seen := map[thread.ID]bool{}
	for {
		rec, err := get(id)
		if err != nil {
			return thread.Record{}, err
		}
		seen[id] = true
		next := rec.ContinuationThreadID
		if rec.Status != thread.Continued || next == "" || seen[next] {
			return rec, nil
		}
		id = next
	}
}

// IsBelow reports whether descendant is a child of ancestor at any depth.
func IsBelow(descendant, ancestor thread.ID, get Get) (bool, error) {
	return IsBelowAny(descendant, func(id thread.ID) bool { return id == ancestor }, get)
}

// IsBelowAny reports whether a thread is a child, at any depth, of one that is
// asked for.
func IsBelowAny(descendant thread.ID, asked func(thread.ID) bool, get Get) (bool, error) {
	seen := map[thread.ID]bool{}
	for id := descendant; !seen[id]; {
		seen[id] = true
		rec, err := get(id)
		if err != nil || rec.ParentID == "" {
			return false, err
		}
		if asked(rec.ParentID) {
			return true, nil
		}
		id = rec.ParentID
	}
	return false, nil
}

// DeepestFirst orders a thread and its descendants into levels, the deepest
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
