package telemetry

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/timeline"
)

// TestContentIsBounded: of one text, and of all texts of a thread, no more is held than is told.
func TestContentIsBounded(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("x", maxContent)
	c := &content{}
	if got := c.keep(whole); got != whole {
		t.Errorf("a text of the length is cut to %d bytes", len(got))
	}
	if got := c.keep(whole + "y"); got != whole+"…" {
		t.Errorf("a longer text has %d bytes", len(got))
	}
	c = &content{}
	for range maxContents / maxContent {
		if c.keep(whole) == "" {
			t.Fatalf("nothing is held after %d bytes", c.total)
		}
	}
	if got := c.keep("x"); got != "" {
		t.Errorf("%q is held beyond all", got)
	}
}

// TestSpanOfSeveral: a span that stands for several calls is the parent of no child.
func TestSpanOfSeveral(t *testing.T) {
	t.Parallel()
	b := builder{claimed: map[thread.ID]bool{"claimed-1": true}}
	for _, tt := range []struct {
		span timeline.Span
		want bool
	}{
		{timeline.Span{Kind: timeline.Tool, Child: "a-1"}, true},
		{timeline.Span{Kind: timeline.Tool, Child: "a-1", Count: 1}, true},
		{timeline.Span{Kind: timeline.Tool, Child: "a-1", Count: 2}, false},
		{timeline.Span{Kind: timeline.Tool}, false},
		{timeline.Span{Kind: timeline.Wait, Child: "a-1"}, true},
		{timeline.Span{Kind: timeline.Wait, Child: "claimed-1"}, false},
	} {
		if got := b.startedHere(tt.span); got != tt.want {
			t.Errorf("%+v: %t", tt.span, got)
		}
	}
}

// endless lists threads without end, for so many pages.
type endless struct {
	Rows
	pages int
}

func (e *endless) List(context.Context, store.Filter) ([]thread.Record, string, error) {
	if e.pages--; e.pages < 0 {
		return nil, "", errors.New("asked for more than anybody needs")
	}
	return make([]thread.Record, store.MaxPage), "more", nil
}

// TestChildrenAreBounded: a thread with very many children has spans of so many.
func TestChildrenAreBounded(t *testing.T) {
	t.Parallel()
	pages := (mostChildren + store.MaxPage - 1) / store.MaxPage
	s := &Sender{Rows: &endless{pages: pages}}
	if all, err := s.children(t.Context(), "a-1"); err != nil || len(all) != pages*store.MaxPage {
		t.Errorf("%d children, %v", len(all), err)
	}
}
