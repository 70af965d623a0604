package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// unfencedSQL is what RecordCost writes, by whoever comes.
const unfencedSQL = `UPDATE threads SET turns = ?, input_tokens = ?, output_tokens = ?, cache_read_tokens = ?, cache_write_tokens = ?,
	spend = ?, token_count = ?, updated_at = ?, last_used = ? WHERE thread_id = ? AND status = 'running'`

// BenchmarkRatioFence measures a write of a runner, which names its run, against the same
// write without that.
func BenchmarkRatioFence(b *testing.B) {
	c := pgtest.Start(b, pgtest.Options{Durable: true})
	st := openAt(b, c.Database(b))
	n := store.NewThread{Kind: thread.KindDirective, Directive: "d", Now: time.Now(), Run: thread.NewRun()}
	rec, _, err := store.Register(b.Context(), st, n, nil)
	if err != nil {
		b.Fatal(err)
	}
	by, registry, turns := st.Runner(rec.ThreadID, rec.Run), &database{store: st, behind: func(bool) string { return "" }, committed: st.hinter.hint}, 0
	if _, err := by.Apply(b.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "h"}, time.Now())); err != nil {
		b.Fatal(err)
	}
	fenced := func() error { turns++; return by.RecordCost(b.Context(), thread.Cost{Turns: turns}, 0) }
	bare := func() error {
		turns++
		now := time.Now().UnixMilli()
		_, err := registry.Update(b.Context(), sqlstore.Relaxed, sqlstore.Update{Query: unfencedSQL, Args: []any{turns, 0, 0, 0, 0, 0, 0, now, now, rec.ThreadID}})
		return err
	}
	b.Run("write of a runner that names its run/the same without/not waited to disk", func(b *testing.B) {
		var with, without []time.Duration
		for b.Loop() {
			for range 1000 {
				with, without = append(with, took(b, fenced)), append(without, took(b, bare))
			}
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(median(with))/float64(median(without)), "x-baseline")
		b.ReportMetric(1.1, "x-goal")
	})
}

func took(b *testing.B, f func() error) time.Duration {
	b.Helper()
	began := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
