package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// TestFlowsSeeWhatIsReportedMeanwhile: a report of spend waits for no other writer. One that
// is committed after a flow of the ledger has begun, and before the flow changes the
// budget, is in what the flow makes of it: no money is lost, and none is given out twice.
func TestFlowsSeeWhatIsReportedMeanwhile(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		// reported is the thread that has spent 70 more meanwhile, of 100.
		reported thread.ID
		flow     func(ctx context.Context, s storetest.Any) error
		check    func(t *testing.T, s *postgres.Store)
	}{
		"settle": {"child", func(ctx context.Context, s storetest.Any) error { return s.Settle(ctx, "child", at) }, func(t *testing.T, s *postgres.Store) {
			want(t, s, "root", func(b store.Budget) bool { return b.Actual == 70 && b.Reserved == 50 })
		}},
		"hand over": {"child", func(ctx context.Context, s storetest.Any) error {
			_, err := s.HandOver(ctx, "child", "next", at)
			return err
		}, func(t *testing.T, s *postgres.Store) {
			want(t, s, "next", func(b store.Budget) bool { return b.MaxSpend == 30 })
			want(t, s, "root", func(b store.Budget) bool { return b.Actual == 70 && b.Reserved == 80 })
		}},
		"forget": {"child", func(ctx context.Context, s storetest.Any) error {
			return s.ForgetBudgets(ctx, []thread.ID{"child"}, at)
		}, func(t *testing.T, s *postgres.Store) {
			want(t, s, "root", func(b store.Budget) bool { return b.Actual == 70 && b.Gone == 70 })
		}},
		"reserve after the end": {"root", func(ctx context.Context, s storetest.Any) error {
			return short(s.ReserveAfter(ctx, "late", "ended", 40, at))
		}, func(t *testing.T, s *postgres.Store) {
			want(t, s, "root", func(b store.Budget) bool { return b.Actual == 870 && b.Reserved == 100 })
		}},
		"spend after the end": {"root", func(ctx context.Context, s storetest.Any) error {
			return short(s.SpendAfter(ctx, "ended", 40, at))
		}, func(t *testing.T, s *postgres.Store) {
			want(t, s, "root", func(b store.Budget) bool { return b.Actual == 870 })
		}},
		"add up": {"child", func(ctx context.Context, s storetest.Any) error {
			_, err := s.Mend().AddUp(ctx)
			return err
		}, func(t *testing.T, s *postgres.Store) {
			want(t, s, "child", func(b store.Budget) bool { return b.Actual == 70 && b.Own == 70 })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, connect(t, pgtest.Server(t)), "p")
			prepareMoney(t, s, name)
			meanwhile(t, s, tt.reported, func() error { return tt.flow(t.Context(), storetest.As(s)) })
			tt.check(t, s)
		})
	}
}

// prepareMoney makes a root with two children, one of which has ended.
func prepareMoney(t *testing.T, s *postgres.Store, name string) {
	t.Helper()
	ctx, as := t.Context(), storetest.As(s)
	errs := []error{
		s.OpenRoot(ctx, "root", 1000, at),
		s.Reserve(ctx, "child", "root", 100, at),
		s.Reserve(ctx, "ended", "root", 500, at), as.Settle(ctx, "ended", at),
	}
	switch name {
	case "settle":
		errs = append(errs, s.Reserve(ctx, "other", "root", 50, at))
	case "hand over":
		errs = append(errs, s.Reserve(ctx, "other", "root", 50, at))
	case "reserve after the end", "spend after the end":
		errs = append(errs, as.Report(ctx, "root", 800, at))
	case "add up": // something is wrong, elsewhere
		_, err := s.Pool().Exec(ctx, "UPDATE budgets SET actual_spend = actual_spend + 5 WHERE thread_id IN ('root', 'child')")
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// meanwhile runs a flow that meets a report of 70 more by a thread, which is committed as soon
// as the flow waits for it.
func meanwhile(t *testing.T, s *postgres.Store, id thread.ID, flow func() error) {
	t.Helper()
	tx, err := s.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // does nothing after the commit
	_, err = tx.Exec(t.Context(), "UPDATE budgets SET actual_spend = actual_spend + 70, own_spend = own_spend + 70 WHERE thread_id = $1", string(id))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- flow() }()
	for waits := false; !waits; {
		err := s.Pool().QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func want(t *testing.T, s *postgres.Store, id thread.ID, as func(store.Budget) bool) {
	t.Helper()
	if b, err := s.Budget(t.Context(), id); err != nil || !as(b) {
		t.Errorf("%s: %+v, %v", id, b, err)
	}
}

// short wants the money not to suffice.
func short(err error) error {
	if _, ok := errors.AsType[*store.InsufficientError](err); ok {
		return nil
	}
	return errors.Join(errors.New("there was money for it"), err)
}
