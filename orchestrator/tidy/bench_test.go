package tidy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// BenchmarkCleanup deletes 1000 threads with their folders of so many that there are.
func BenchmarkCleanup(b *testing.B) {
	for _, total := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(total), func(b *testing.B) {
			s := newScene(b)
			s.many(total)
			for b.Loop() {
				b.StopTimer()
				s.folders(1000)
				b.StartTimer()
				told, err := s.t.Cleanup(s.ctx, tidy.CleanupRequest{OlderThan: "1h", Agreed: true, Directive: "old"})
				s.noError(err)
				if told.Threads != 1000 {
					b.Fatalf("deleted %d", told.Threads)
				}
			}
		})
	}
}

// many adds rows of threads that have ended and are not old.
func (s *scene) many(n int) {
	s.Helper()
	s.restore(n, "d", s.now)
}

// folders adds 1000 old threads with their folders.
func (s *scene) folders(n int) {
	s.Helper()
	s.now = s.now.Add(time.Minute)
	for _, id := range s.restore(n, "old", s.now.Add(-48*time.Hour)) {
		dir := filepath.Join(placetest.Dir(s.project), filepath.FromSlash(string(id)))
		s.noError(os.MkdirAll(filepath.Join(dir, "artifacts"), 0o700))
		for _, file := range []string{"thread.json", "transcript.jsonl", "capabilities.md", "thread.log", "artifacts/a.txt"} {
			s.noError(os.WriteFile(filepath.Join(dir, file), make([]byte, 2000), 0o600))
		}
	}
}

func (s *scene) restore(n int, directive string, at time.Time) (ids []thread.ID) {
	s.Helper()
	rows := make([]store.Restored, n)
	for i := range rows {
		id := thread.NewID(directive, at, i+1)
		rows[i].Record = thread.Record{
			ThreadID: id, Kind: thread.KindDirective, Directive: directive, Status: thread.Completed, CreatedAt: at, UpdatedAt: at, CompletedAt: at,
			LastUsed: at, Outcome: &thread.Outcome{State: thread.Completed, Result: "done"}, Cost: thread.Cost{Turns: 1, Spend: 3},
		}
		rows[i].Budget = &store.Budget{ThreadID: id, MaxSpend: 10, Own: 3, CreatedAt: at, UpdatedAt: at}
		ids = append(ids, id)
	}
	_, err := s.store.Restore(s.ctx, rows)
	s.noError(err)
	return ids
}
