package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// many registers threads that have ended, with results of some kilobytes.
func many(t *testing.T, s *Store, n int) (ids []thread.ID) {
	t.Helper()
	rows := make([]store.Restored, n)
	for i := range rows {
		id := thread.ID(fmt.Sprintf("d-%d", i))
		rows[i].Record = thread.Record{
			ThreadID: id, Kind: thread.KindDirective, Directive: "d", Status: thread.Completed, CreatedAt: testTime, UpdatedAt: testTime,
			CompletedAt: testTime, LastUsed: testTime, Outcome: &thread.Outcome{State: thread.Completed, Result: fmt.Sprintf("%4096d", i)},
		}
		rows[i].Budget = &store.Budget{ThreadID: id, MaxSpend: 10, Own: 1, CreatedAt: testTime, UpdatedAt: testTime}
		ids = append(ids, id)
	}
	_, err := s.Restore(t.Context(), rows)
	noError(t, err)
	return ids
}

// TestVacuum: what was deleted is given back, with the log, while another store of the
// same folder writes; no write of that fails. A database of before there was that is
// written anew once, and from then on gives parts back.
func TestVacuum(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, former := range []bool{false, true} {
		t.Run(fmt.Sprint("former ", former), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir, unpolled)
			if former {
				for _, d := range []*database{s.registry, s.ledger} {
					noError(t, beside(t, d, "PRAGMA auto_vacuum = NONE"))
					noError(t, beside(t, d, "VACUUM"))
				}
			}
			ids := many(t, s, 1000)
			_, err := s.Delete(t.Context(), [][]thread.ID{ids[10:]}, testTime)
			noError(t, err)
			noError(t, s.ForgetBudgets(t.Context(), ids[10:], testTime))
			noError(t, s.EndDeletions(t.Context(), ids[10:]))
			other := open(t, dir, unpolled)
			ctx, stop := context.WithCancel(t.Context())
			var group sync.WaitGroup
			group.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					if _, _, err := store.Register(context.WithoutCancel(ctx), other, store.NewThread{Kind: thread.KindDirective, Directive: "w", Now: testTime.Add(time.Duration(i) * time.Second)}, nil); err != nil {
						t.Error(err)
						return
					}
					if rec, err := other.Get(context.WithoutCancel(ctx), ids[0]); err != nil || len(rec.Outcome.Result) != 4096 {
						t.Errorf("read %v, %v", rec.ThreadID, err)
					}
				}
			})
			for range 2 {
				_, err = s.Vacuum(t.Context(), false)
				noError(t, err)
			}
			stop()
			group.Wait()
			done, err := s.Vacuum(t.Context(), false)
			noError(t, err)
			for i, name := range []string{registryFile, ledgerFile} {
				info, err := os.Stat(filepath.Join(dir, name))
				noError(t, err)
				if done[i].After != info.Size() || info.Size() > 2<<20 || done[i].Kept != "" {
					t.Errorf("%+v, the file has %d bytes", done[i], info.Size())
				}
				if log, err := os.Stat(filepath.Join(dir, name+"-wal")); err == nil && log.Size() > 0 {
					t.Errorf("a log of %d bytes", log.Size())
				}
			}
			noError(t, s.Check(t.Context()))
			if mode := numberOf(t, s.registry, "PRAGMA auto_vacuum"); mode != 2 {
				t.Errorf("auto_vacuum is %d", mode)
			}
			_, err = storetest.As(s).Get(t.Context(), ids[3])
			noError(t, err)
		})
	}
}

func numberOf(t *testing.T, d *database, query string) (n int) {
	t.Helper()
	noError(t, d.Read(t.Context(), scanInto(t, query, &n)))
	return n
}

func scanInto(t *testing.T, query string, into any) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error { return db.QueryRowContext(ctx, query).Scan(into) }
}
