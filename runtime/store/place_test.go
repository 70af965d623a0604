package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// others is what nobody asks for.
type others struct{ store.News }

// told is a registry of which only the news matter.
type told struct {
	others
	list []thread.News
}

func (s *told) News(_ context.Context, after int64, most int) (page []thread.News, err error) {
	for _, n := range s.list {
		if n.Seq > after && len(page) < most {
			page = append(page, n)
		}
	}
	return page, nil
}

func (s *told) LastNews(context.Context) (int64, error) {
	if len(s.list) == 0 {
		return 0, nil
	}
	return s.list[len(s.list)-1].Seq, nil
}

// ends are ends of threads at times, from a place on.
func ends(from int64, at ...int) (list []thread.News) {
	for i, second := range at {
		list = append(list, thread.News{Seq: from + int64(i), Kind: thread.Ended, ThreadID: thread.ID(fmt.Sprint("t", second)), At: time.Unix(int64(second), 0)})
	}
	return list
}

// overtaken is a registry to which something happens right after it has told its newest place.
type overtaken struct {
	*told
	then []thread.News
}

func (s overtaken) LastNews(ctx context.Context) (int64, error) {
	seq, err := s.told.LastNews(ctx)
	s.list = s.then
	return seq, err
}

// TestLatestPlaceOvertaken: what comes while somebody finds out the newest place is behind it,
// also where that one was deleted meanwhile.
func TestLatestPlaceOvertaken(t *testing.T) {
	t.Parallel()
	s := overtaken{&told{list: ends(1, 1, 2, 3)}, slices.Concat(ends(1, 1, 2), ends(4, 4))}
	p, err := store.LatestPlace(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	fresh, _, err := p.Read(t.Context(), s.told, 10)
	if err != nil || len(fresh) != 1 || fresh[0].ThreadID != "t4" {
		t.Errorf("read %+v, %v", fresh, err)
	}
}

// TestPlace reads what has come to pass, and goes on after something has happened to the
// registry: nothing new is left out, nothing is read twice.
func TestPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, then []thread.News
		want         []thread.ID
	}{
		"nothing happens":                      {before: ends(1, 1, 2, 3), then: ends(1, 1, 2, 3)},
		"more":                                 {before: ends(1, 1, 2, 3), then: ends(1, 1, 2, 3, 4, 5), want: []thread.ID{"t4", "t5"}},
		"the newest was deleted":               {before: ends(1, 1, 2, 3), then: ends(1, 1, 2)},
		"the newest was deleted, more since":   {before: ends(1, 1, 2, 3), then: slices.Concat(ends(1, 1, 2), ends(4, 4)), want: []thread.ID{"t4"}},
		"all were deleted":                     {before: ends(1, 1, 2, 3)},
		"made anew, and empty":                 {before: ends(1, 1, 2, 3)},
		"made anew, fewer since":               {before: ends(1, 1, 2, 3), then: ends(1, 4, 5), want: []thread.ID{"t4", "t5"}},
		"made anew, as many since":             {before: ends(1, 1, 2, 3), then: ends(1, 4, 5, 6), want: []thread.ID{"t4", "t5", "t6"}},
		"made anew, more since":                {before: ends(1, 1, 2, 3), then: ends(1, 4, 5, 6, 7, 8, 9, 10), want: []thread.ID{"t4", "t5", "t6", "t7", "t8", "t9", "t10"}},
		"made anew of an older copy":           {before: ends(1, 1, 2, 3), then: ends(1, 1, 4, 5), want: []thread.ID{"t4", "t5"}},
		"there was nothing":                    {then: ends(1, 1, 2), want: []thread.ID{"t1", "t2"}},
		"deleted within, and more than a page": {before: ends(1, 1, 2), then: slices.Concat(ends(2, 2), ends(7, 3, 4, 5, 6, 7)), want: []thread.ID{"t3", "t4", "t5", "t6", "t7"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &told{list: c.before}
			p, err := store.LatestPlace(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			s.list = c.then
			var got []thread.ID
			for range 2 { // of the second time there is nothing
				for more := true; more; {
					var page []thread.News
					page, more, err = p.Read(t.Context(), s, 2)
					if err != nil || len(page) > 2 {
						t.Fatalf("%d at once, %v", len(page), err)
					}
					for _, n := range page {
						p.Pass(n)
						got = append(got, n.ThreadID)
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("read %q, want %q", got, c.want)
			}
		})
	}
}
