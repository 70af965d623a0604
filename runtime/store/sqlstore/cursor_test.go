package sqlstore

import (
	"errors"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func FuzzCursor(f *testing.F) {
	testTime := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	lists := func(t testing.TB) (all []*listing) {
		for _, by := range store.SortKeys() {
			l, err := newListing(SQLite, store.Filter{Directive: "d", Sort: store.Sort{By: by}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
		return all
	}
	for _, l := range lists(f) {
		f.Add(l.cursor(l.positionOf(thread.Record{ThreadID: "d-1", CreatedAt: testTime, LastUsed: testTime, Name: "Ä", TokenCount: 7})))
	}
	f.Add("")
	f.Add("e30")
	f.Add("eyJjIjoxLCJpIjoiLi4vLi4ifQ")
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range lists(t) {
			filter := l.filter
			filter.Cursor = text
			at, err := decodeCursor(filter)
			if err != nil {
				if !errors.Is(err, store.ErrBadCursor) {
					t.Errorf("refused with %v", err)
				}
				continue
			}
			number, _ := at.key.(int64)
			name, _ := at.key.(string)
			filter.Cursor = l.cursor(l.positionOf(thread.Record{
				ThreadID: at.id, CreatedAt: fromMillis(number), LastUsed: fromMillis(number), Name: name,
				TokenCount: number, Cost: thread.Cost{Spend: thread.Micros(number)},
			}))
			if again, err := decodeCursor(filter); err != nil || again != at && number != 0 {
				t.Errorf("%+v came back as %+v, %v", at, again, err)
			}
		}
	})
}
