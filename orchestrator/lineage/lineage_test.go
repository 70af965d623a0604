package lineage_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func lookup(rows ...thread.Record) lineage.Get {
	byID := map[thread.ID]thread.Record{}
	for _, r := range rows {
		byID[r.ThreadID] = r
	}
	return func(id thread.ID) (thread.Record, error) {
		r, ok := byID[id]
		if !ok {
			return r, thread.ErrNotFound
		}
		return r, nil
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	get := lookup(
		thread.Record{ThreadID: "a", Status: thread.Continued, ContinuationThreadID: "b"},
		thread.Record{ThreadID: "b", Status: thread.Continued, ContinuationThreadID: "c"},
		thread.Record{ThreadID: "c", Status: thread.Completed},
		thread.Record{ThreadID: "resumed", Status: thread.Error, ContinuationThreadID: "c"},
		thread.Record{ThreadID: "loop1", Status: thread.Continued, ContinuationThreadID: "loop2"},
		thread.Record{ThreadID: "loop2", Status: thread.Continued, ContinuationThreadID: "loop1"},
		thread.Record{ThreadID: "cut", Status: thread.Continued, ContinuationThreadID: "gone"},
	)
	for from, want := range map[thread.ID]thread.ID{"a": "c", "b": "c", "c": "c", "resumed": "c", "loop1": "loop2"} {
		rec, err := lineage.Resolve(from, get)
		if err != nil || rec.ThreadID != want {
			t.Errorf("Resolve(%s) = %s, %v; want %s", from, rec.ThreadID, err, want)
		}
	}
	for _, from := range []thread.ID{"cut", "nobody"} {
		if _, err := lineage.Resolve(from, get); !errors.Is(err, thread.ErrNotFound) {
			t.Errorf("Resolve(%s): %v, want ErrNotFound", from, err)
		}
	}
}

func TestIsBelow(t *testing.T) {
	t.Parallel()
	get := lookup(
		thread.Record{ThreadID: "root"},
		thread.Record{ThreadID: "child", ParentID: "root"},
		thread.Record{ThreadID: "grandchild", ParentID: "child"},
		thread.Record{ThreadID: "circle1", ParentID: "circle2"},
		thread.Record{ThreadID: "circle2", ParentID: "circle1"},
	)
	tests := []struct {
		below, above thread.ID
		want         bool
	}{
		{"grandchild", "root", true},
		{"child", "root", true},
		{"root", "root", false},
		{"root", "child", false},
		{"circle1", "root", false},
	}
	for _, tt := range tests {
		got, err := lineage.IsBelow(tt.below, tt.above, get)
		if err != nil || got != tt.want {
			t.Errorf("IsBelow(%s, %s) = %t, %v; want %t", tt.below, tt.above, got, err, tt.want)
		}
	}
}

// The children of a thread stay below those that continue it, however the thread came
// to be continued, and not the other way round.
func TestIsBelowAcrossHandOvers(t *testing.T) {
	t.Parallel()
	get := lookup(
		thread.Record{ThreadID: "root"},
		thread.Record{ThreadID: "first", ParentID: "root", Status: thread.Continued, ContinuationThreadID: "second"},
		thread.Record{ThreadID: "second", ParentID: "root", ContinuationOf: "first", Status: thread.Error, ContinuationThreadID: "third"},
		thread.Record{ThreadID: "third", ContinuationOf: "second", Status: thread.Running},
		thread.Record{ThreadID: "child", ParentID: "first"},
		thread.Record{ThreadID: "grandchild", ParentID: "child"},
		thread.Record{ThreadID: "late", ParentID: "third"},
		thread.Record{ThreadID: "cut", ParentID: "root", Status: thread.Continued, ContinuationThreadID: "gone"},
		thread.Record{ThreadID: "below cut", ParentID: "cut"},
	)
	tests := []struct {
		below, above thread.ID
		want         bool
	}{
		{"child", "first", true},
		{"child", "second", true},
		{"child", "third", true},
		{"grandchild", "third", true},
		{"grandchild", "root", true},
		{"late", "third", true},
		{"late", "second", false},
		{"late", "root", false},
		{"second", "first", false},
		{"first", "second", false},
		{"child", "child", false},
	}
	for _, tt := range tests {
		got, err := lineage.IsBelow(tt.below, tt.above, get)
		if err != nil || got != tt.want {
			t.Errorf("IsBelow(%s, %s) = %t, %v; want %t", tt.below, tt.above, got, err, tt.want)
		}
	}
	if _, err := lineage.IsBelow("below cut", "root", get); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("a chain that is cut: %v", err)
	}
}

func TestChain(t *testing.T) {
	t.Parallel()
	get := lookup(
		thread.Record{ThreadID: "a", ContinuationThreadID: "b"},
		thread.Record{ThreadID: "b", ContinuationOf: "a", ContinuationThreadID: "c"},
		thread.Record{ThreadID: "c", ContinuationOf: "b"},
		thread.Record{ThreadID: "given up", ContinuationOf: "b"},
		thread.Record{ThreadID: "alone"},
		thread.Record{ThreadID: "first is gone", ContinuationOf: "gone"},
		thread.Record{ThreadID: "circle1", ContinuationOf: "circle2", ContinuationThreadID: "circle2"},
		thread.Record{ThreadID: "circle2", ContinuationOf: "circle1", ContinuationThreadID: "circle1"},
		thread.Record{ThreadID: "next is gone", ContinuationThreadID: "gone"},
	)
	for from, want := range map[thread.ID][]thread.ID{
		"a": {"a", "b", "c"}, "b": {"a", "b", "c"}, "c": {"a", "b", "c"}, "given up": {"a", "b", "given up"},
		"alone": {"alone"}, "first is gone": {"first is gone"},
	} {
		chain, err := lineage.Chain(from, get)
		if got := ids(chain); err != nil || !slices.Equal(got, want) {
			t.Errorf("Chain(%s) = %v, %v; want %v", from, got, err, want)
		}
	}
	if chain, err := lineage.Chain("circle1", get); err != nil || len(chain) == 0 {
		t.Errorf("a circle: %v, %v", ids(chain), err)
	}
	for _, from := range []thread.ID{"next is gone", "nobody"} {
		if _, err := lineage.Chain(from, get); !errors.Is(err, thread.ErrNotFound) {
			t.Errorf("Chain(%s): %v, want ErrNotFound", from, err)
		}
	}
}

func TestLinked(t *testing.T) {
	t.Parallel()
	a, b := thread.Record{ThreadID: "a", ContinuationThreadID: "b"}, thread.Record{ThreadID: "b", ContinuationOf: "a", ContinuationThreadID: "c"}
	c, late := thread.Record{ThreadID: "c", ContinuationOf: "b"}, thread.Record{ThreadID: "late", ContinuationOf: "b", ContinuationThreadID: "d"}
	d := thread.Record{ThreadID: "d", ContinuationOf: "late"}
	for name, tt := range map[string]struct {
		chain []thread.Record
		want  []thread.ID
	}{
		"nobody":        {nil, nil},
		"alone":         {[]thread.Record{c}, []thread.ID{"c"}},
		"a chain":       {[]thread.Record{a, b, c}, []thread.ID{"a", "b", "c"}},
		"never began":   {[]thread.Record{a, b, late}, []thread.ID{"late"}},
		"and continued": {[]thread.Record{a, b, late, d}, []thread.ID{"late", "d"}},
	} {
		if got := ids(lineage.Linked(tt.chain)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func ids(chain []thread.Record) (ids []thread.ID) {
	for _, rec := range chain {
		ids = append(ids, rec.ThreadID)
	}
	return ids
}

func distinct(chain []thread.Record) bool {
	all := ids(chain)
	slices.Sort(all)
	return len(slices.Compact(all)) == len(chain)
}

// TestChains makes registries of whole chains with children, and checks that it
// does not matter from which thread one looks.
func TestChains(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var rows []thread.Record
		var chain []thread.ID
		for i := range rapid.IntRange(1, 8).Draw(t, "length") {
			id := thread.ID(fmt.Sprintf("link-%d", i))
			rec := thread.Record{ThreadID: id, Status: thread.Running}
			if i > 0 {
				rec.ContinuationOf = chain[i-1]
				rows[i-1].ContinuationThreadID = id
				rows[i-1].Status = rapid.SampledFrom([]thread.State{thread.Continued, thread.Completed, thread.Error}).Draw(t, "state")
			}
			chain, rows = append(chain, id), append(rows, rec)
		}
		parent := rapid.IntRange(0, len(chain)-1).Draw(t, "parent")
		rows = append(rows, thread.Record{ThreadID: "child", ParentID: chain[parent]})
		get := lookup(rows...)
		for i, id := range chain {
			if all, err := lineage.Chain(id, get); err != nil || !slices.Equal(ids(all), chain) {
				t.Fatalf("Chain(%s) = %v, %v", id, ids(all), err)
			}
			if last, err := lineage.Resolve(id, get); err != nil || last.ThreadID != chain[len(chain)-1] {
				t.Fatalf("Resolve(%s) = %s, %v", id, last.ThreadID, err)
			}
			if below, err := lineage.IsBelow("child", id, get); err != nil || below != (i >= parent) {
				t.Fatalf("a child of %s is below %s: %t, %v", chain[parent], id, below, err)
			}
		}
	})
}

// TestDamagedChains follows references that go anywhere: every question ends.
func TestDamagedChains(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]thread.ID{"", "a", "b", "c", "d"})
		var rows []thread.Record
		for _, id := range []thread.ID{"a", "b", "c", "d"} {
			rows = append(rows, thread.Record{
				ThreadID: id, ParentID: names.Draw(t, "parent"),
				ContinuationOf: names.Draw(t, "of"), ContinuationThreadID: names.Draw(t, "next"),
			})
		}
		get := lookup(rows...)
		for _, id := range []thread.ID{"a", "b", "c", "d"} {
			if chain, err := lineage.Chain(id, get); err != nil || !slices.Contains(ids(chain), id) || !distinct(chain) {
				t.Fatalf("Chain(%s) = %v, %v", id, ids(chain), err)
			}
			if _, err := lineage.Resolve(id, get); err != nil {
				t.Fatal(err)
			}
			if _, err := lineage.IsBelow(id, "a", get); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestIsBelowAny(t *testing.T) {
	t.Parallel()
	get := lookup(
		thread.Record{ThreadID: "root"},
		thread.Record{ThreadID: "child", ParentID: "root"},
		thread.Record{ThreadID: "grandchild", ParentID: "child"},
		thread.Record{ThreadID: "orphan", ParentID: "gone"},
	)
	asked := func(id thread.ID) bool { return id == "root" || id == "grandchild" }
	for id, want := range map[thread.ID]bool{"grandchild": true, "child": true, "root": false} {
		if got, err := lineage.IsBelowAny(id, asked, get); err != nil || got != want {
			t.Errorf("IsBelowAny(%s) = %t, %v; want %t", id, got, err, want)
		}
	}
	if _, err := lineage.IsBelowAny("orphan", asked, get); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("a missing ancestor: %v", err)
	}
}

func TestDeepestFirst(t *testing.T) {
	t.Parallel()
	levels := lineage.DeepestFirst([]thread.Record{
		{ThreadID: "root", ParentID: "elsewhere"},
		{ThreadID: "a", ParentID: "root"},
		{ThreadID: "b", ParentID: "root"},
		{ThreadID: "c", ParentID: "a"},
	})
	want := [][]thread.ID{{"c"}, {"a", "b"}, {"root"}}
	if len(levels) != len(want) {
		t.Fatalf("got %d levels, want %d", len(levels), len(want))
	}
	for i, level := range levels {
		if len(level) != len(want[i]) {
			t.Fatalf("level %d has %d rows, want %v", i, len(level), want[i])
		}
		for j, rec := range level {
			if rec.ThreadID != want[i][j] {
				t.Errorf("level %d, place %d: %s, want %s", i, j, rec.ThreadID, want[i][j])
			}
		}
	}
}
