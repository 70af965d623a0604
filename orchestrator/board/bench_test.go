package board_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// BenchmarkRatioBoard compares a look after one thread has worked with a whole board, of
// 1 000 threads that work and as many that have ended.
func BenchmarkRatioBoard(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	s, closed := openScene(ctx, b, b.TempDir())
	defer closed()
	ids := s.crowd(1000, 0)
	for _, ended := range []int{0, 20_000} {
		s.crowd(0, ended)
		f := s.face(s.keeper())
		var whole, patch []time.Duration
		turn := 0
		for range 3 {
			s.all = s.fresh() // which has read no file
			f.keeper, f.version = s.keeper(), ""
			began := time.Now()
			f.look()
			whole = append(whole, time.Since(began))
			for range 5 {
				turn++
				s.spend(ids[turn], 1)
				began = time.Now()
				if told := f.look(); told.Whole || len(told.Rows) > 2 { // it and its root
					b.Fatalf("%d rows have changed", len(told.Rows))
				}
				patch = append(patch, time.Since(began))
			}
		}
		if len(f.rows) < 1000+min(ended, board.MostEnded) || ended > 0 && f.last.Omitted < ended-2*board.MostEnded {
			b.Fatalf("%d rows are shown, %d omitted", len(f.rows), f.last.Omitted)
		}
		slices.Sort(whole)
		slices.Sort(patch)
		b.Run("board of 1 000 threads, one changed, "+map[bool]string{true: "20 000", false: "none"}[ended > 0]+" ended/the whole board/nothing is written", func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(patch[len(patch)/2])/float64(whole[len(whole)/2]), "x-baseline")
			b.ReportMetric(0.2, "x-goal")
			b.Logf("%v against %v", patch[len(patch)/2], whole[len(whole)/2])
		})
	}
}

// crowd adds threads, below one root in a hundred, that work or have ended.
func (s *scene) crowd(working, ended int) (ids []thread.ID) {
	s.Helper()
	var rows []store.Restored
	for i := range working + ended {
		s.crowded++
		s.now = s.now.Add(time.Millisecond)
		rec := thread.Record{
			ThreadID: thread.NewID("crowd", testTime, s.crowded), Kind: thread.KindDirective, Directive: "crowd", Name: "one of many", Status: thread.Running, Model: "fake/model",
			Process: thread.Process{PID: 1 << 30, Host: "elsewhere", Boot: "another"}, CreatedAt: s.now, UpdatedAt: s.now, LastUsed: s.now,
		}
		if i >= working {
			rec.Status, rec.CompletedAt, rec.Outcome = thread.Completed, s.now, &thread.Outcome{State: thread.Completed, Result: "done"}
		}
		if i%100 != 0 {
			rec.ParentID = rows[i-i%100].Record.ThreadID
		}
		rows = append(rows, store.Restored{Record: rec, Budget: &store.Budget{
			ThreadID: rec.ThreadID, ParentID: rec.ParentID, MaxSpend: 1_000_000 / thread.Micros(1+min(i%100, 1)*200), Active: rec.Status == thread.Running, CreatedAt: s.now, UpdatedAt: s.now,
		}})
		ids = append(ids, rec.ThreadID)
		if i < working || i >= working+ended-board.MostEnded {
			s.describe(rec)
			s.said(rec.ThreadID, "these are my last words")
		}
	}
	added, err := s.store.Restore(s.ctx, rows)
	s.noError(err)
	if added.Threads != len(rows) || len(added.Refused) > 0 {
		s.Fatalf("added %d, refused %d, the first %v", added.Threads, len(added.Refused), added.Refused[:1])
	}
	return ids
}
