package sqlite

import (
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// withCosts is a store of n threads of 20 directives that ended with a result of 2 kB, on
// 300 days.
func withCosts(tb testing.TB, n int) *Store {
	tb.Helper()
	s := open(tb, tb.TempDir(), Options{Poll: unpolled.Poll})
	err := beside(tb, s.registry, numbers+`INSERT INTO threads (thread_id, kind, directive, model, status, result, turns, input_tokens, spend,
			created_at, updated_at, last_used, completed_at)
		SELECT 't-' || i, 'directive', 'd' || i % 20, 'p/m' || i % 3, 'completed', json_object('status', 'completed', 'result', hex(zeroblob(1000))), 3, 900, 1234,
			?2 - (?1 - i) * (300 * 86400000 / ?1), ?2, ?2, ?2 FROM n`, n, testTime.UnixMilli())
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// BenchmarkRatioCosts: what 100 000 threads have cost, by directive and day, against
// 1 000.
func BenchmarkRatioCosts(b *testing.B) {
	b.Run("costs of 100 000 threads/of 1 000/nothing is written", func(b *testing.B) {
		many, few := withCosts(b, 100_000), withCosts(b, 1000)
		var measured, baseline []time.Duration
		sum := func(s *Store) func() error {
			return func() error {
				_, err := s.Costs(b.Context(), store.CostQuery{By: store.CostByDirective, Slot: 24 * time.Hour})
				return err
			}
		}
		for b.Loop() {
			measured = append(measured, timed(b, sum(many)))
			for range 5 {
				baseline = append(baseline, timed(b, sum(few)))
			}
		}
		reportRatio(b, 150, measured, baseline)
	})
}
