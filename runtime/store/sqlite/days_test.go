package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestStatsAreCounted holds the running totals to what a count of all rows comes to,
// whatever was registered, restored, spent, ended and deleted on whatever day; the
// spend of the deleted still counts.
func TestStatsAreCounted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t, t.TempDir(), unpolled)
		var ids []thread.ID
		since := store.StatsSince{Used: testTime.AddDate(0, 0, 4), Created: testTime.AddDate(0, 0, 5)}
		var gone thread.Micros // counted since
		for i := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			at := testTime.AddDate(0, 0, rapid.IntRange(0, 9).Draw(rt, "day"))
			pick := func() thread.ID { return rapid.SampledFrom(ids).Draw(rt, "thread") }
			switch action := rapid.IntRange(0, 5).Draw(rt, "action"); {
			case action <= 1 || len(ids) == 0:
				rec, _, err := store.Register(t.Context(), s, store.NewThread{Kind: thread.KindDirective, Directive: "d", Now: at}, claimNothing)
				noError(t, err)
				ids = append(ids, rec.ThreadID)
				_, err = storetest.As(s).Apply(t.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 1}, at))
				noError(t, err)
			case action == 2:
				id := thread.ID(fmt.Sprintf("restored-%d", i))
				_, err := s.Restore(t.Context(), []store.Restored{{Record: thread.Record{
					ThreadID: id, Kind: thread.KindDirective, Directive: "d", Status: thread.Completed, CreatedAt: at, UpdatedAt: at, CompletedAt: at,
					LastUsed: at, Cost: thread.Cost{Turns: 1, Spend: 3}, Outcome: &thread.Outcome{State: thread.Completed},
				}}})
				noError(t, err)
			case action == 3:
				cost := thread.Cost{Turns: 1, Spend: thread.Micros(rapid.IntRange(0, 9).Draw(rt, "spend"))}
				_ = storetest.As(s).RecordCost(t.Context(), pick(), cost, rapid.Int64Range(0, 9).Draw(rt, "tokens")) // not of one that has ended
			case action == 4:
				c, err := store.Finished(pick(), thread.Outcome{State: thread.Completed}, nil, at)
				noError(t, err)
				_, _ = storetest.As(s).Apply(t.Context(), c) // it may have ended before
			default:
				id := pick()
				ids = slices.DeleteFunc(ids, func(other thread.ID) bool { return other == id })
				if rec, err := s.Get(t.Context(), id); err == nil && !rec.CreatedAt.Before(since.Created.UTC().Truncate(24*time.Hour)) {
					gone += rec.Cost.Spend
				}
				noError(t, beside(t, s.registry, "DELETE FROM threads WHERE thread_id = ?", id))
			}
		}
		got, err := s.Stats(t.Context(), since)
		noError(t, err)
		want := countAll(t, s, since)
		want.Spend += gone
		if got != want {
			rt.Fatalf("stats %+v, counted %+v", got, want)
		}
	})
}

// countAll is what Stats tells, by a look at every row.
func countAll(t *testing.T, s *Store, since store.StatsSince) (st store.Stats) {
	t.Helper()
	midnight := func(at time.Time) int64 { return at.UTC().Truncate(24 * time.Hour).UnixMilli() }
	noError(t, s.registry.Read(t.Context(), func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE last_used >= ?),
			coalesce(avg(token_count), 0), coalesce(max(token_count), 0), coalesce(sum(spend) FILTER (WHERE created_at >= ?), 0) FROM threads`,
			midnight(since.Used), midnight(since.Created)).Scan(&st.Threads, &st.Active, &st.AvgTokens, &st.MaxTokens, &st.Spend)
	}))
	return st
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
