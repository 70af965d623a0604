package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// deleted is a registry of which only the deletions matter.
type deleted struct {
	ids []thread.ID // in their order
}

func (d deleted) Deletions(_ context.Context, f store.DeletionFilter) (page []store.Deletion, err error) {
	for i, id := range d.ids {
		if seq := int64(i + 1); seq > f.After && len(page) < store.MaxPage {
			page = append(page, store.Deletion{Seq: seq, Record: thread.Record{ThreadID: id}})
		}
	}
	return page, nil
}

// TestDeletionsAnew: deletions of a registry that was made anew are noticed, however many there
// were in the one before, and those of one that stays are noticed once.
func TestDeletionsAnew(t *testing.T) {
	t.Parallel()
	many := make([]thread.ID, 2*store.MaxPage+1)
	for i := range many {
		many[i] = thread.ID(fmt.Sprint("m", i))
	}
	for name, c := range map[string]struct{ before, then, want []thread.ID }{
		"the same":         {before: []thread.ID{"a", "b"}, then: []thread.ID{"a", "b"}},
		"one more":         {before: []thread.ID{"a", "b"}, then: []thread.ID{"a", "b", "c"}, want: []thread.ID{"c"}},
		"many more":        {before: []thread.ID{"m0"}, then: many, want: many[1:]},
		"the first":        {then: []thread.ID{"a"}, want: []thread.ID{"a"}},
		"anew, as many":    {before: []thread.ID{"a", "b"}, then: []thread.ID{"x", "y"}, want: []thread.ID{"x", "y"}},
		"anew, fewer":      {before: []thread.ID{"a", "b"}, then: []thread.ID{"x"}, want: []thread.ID{"x"}},
		"anew, many":       {before: []thread.ID{"a"}, then: many, want: many},
		"anew, and nobody": {before: []thread.ID{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p store.DeletionPlace
			if err := p.Read(t.Context(), deleted{ids: c.before}, func(store.Deletion) {}); err != nil {
				t.Fatal(err)
			}
			var gone []thread.ID
			err := p.Read(t.Context(), deleted{ids: c.then}, func(d store.Deletion) { gone = append(gone, d.Record.ThreadID) })
			if err != nil || !slices.Equal(gone, c.want) {
				t.Errorf("%d are gone, want %d: %v", len(gone), len(c.want), err)
			}
		})
	}
}
