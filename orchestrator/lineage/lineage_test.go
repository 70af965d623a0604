package lineage_test

import (
	"errors"
	"testing"

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
	for from, want := range map[thread.ID]thread.ID{"a": "c", "b": "c", "c": "c", "resumed": "resumed", "loop1": "loop2"} {
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
