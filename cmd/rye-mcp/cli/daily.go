package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/daily"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// withDaily keeps the roots of a project within what the user lets all projects
// spend in a day.
func (p *project) withDaily(sys System, inner store.Store, log zerolog.Logger) store.Store {
	return &daily.Store{
		Store: inner, Book: p.book(sys), Project: p.path,
		Limit:   func() (*thread.Micros, error) { return daily.LimitOf(p.config.Read()) },
		Settled: func(ctx context.Context, open []daily.Entry) error { return p.settleRoots(ctx, sys, open, log) },
	}
}

func (p *project) book(sys System) *daily.Book { return bookOf(sys, p.resolver.Roots().User) }

func bookOf(sys System, user string) *daily.Book {
	return &daily.Book{Path: daily.Path(user), Now: sys.Now}
}

// dailySpend tells how the money of today stands; nil without a limit.
func dailySpend(ctx context.Context, c *config.Snapshot, book *daily.Book) (*view.DailySpend, error) {
	limit, err := daily.LimitOf(c)
	if err != nil || limit == nil {
		return nil, err
	}
	t, err := book.Today(ctx)
	return &view.DailySpend{
		Limit: *limit, Spent: t.Spent, Held: t.Held, Left: max(0, *limit-t.Spent-t.Held), RenewsAt: t.Renews,
	}, err
}

// settleRoots settles what is dead among the open roots of all projects, and brings
// the book up to what their ledgers say.
func (p *project) settleRoots(ctx context.Context, sys System, open []daily.Entry, log zerolog.Logger) error {
	var failed []error
	for len(open) > 0 {
		path := open[0].Project
		here := func(e daily.Entry) bool { return e.Project == path }
		var mine []daily.Entry
		for _, e := range open {
			if here(e) {
				mine = append(mine, e)
			}
		}
		open = slices.DeleteFunc(open, here)
		if err := p.settleRootsOf(ctx, sys, path, mine, log); err != nil {
			failed = append(failed, fmt.Errorf("settle the threads of %s: %w", path, err))
		}
	}
	// One project that cannot be opened keeps its roots in the book, and no more.
	for _, err := range failed {
		log.Warn().Err(err).Msg("daily spend")
	}
	return context.Cause(ctx)
}

func (p *project) settleRootsOf(ctx context.Context, sys System, path string, open []daily.Entry, log zerolog.Logger) (err error) {
	book, at := p.book(sys), p
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		for _, e := range open { // nobody runs where there is no folder
			if err := book.Drop(ctx, e); err != nil {
				return err
			}
		}
		return nil
	}
	if path != p.path {
		if at, err = assemble(ctx, sys, path, log, mendedStore); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, at.Close()) }()
	}
	if _, err := at.control.Threads.Sweep(ctx); err != nil {
		return err
	}
	kept := &daily.Store{Store: at.store, Book: book, Project: path}
	for _, e := range open {
		if err := kept.Refresh(ctx, e.ThreadID); err != nil {
			return err
		}
	}
	return nil
}

// dailyMoney tells how much of the day's money is left.
func (d *doctor) dailyMoney(ctx context.Context) []finding {
	if d.user == "" {
		return nil
	}
	now, err := dailySpend(ctx, d.config, bookOf(d.sys, d.user))
	switch {
	case err != nil:
		return []finding{failf("", "limits.daily_spend cannot be kept: %v", err)}
	case now == nil:
		return nil
	}
	text := fmt.Sprintf("%s of %s are left today (%s spent, %s held by threads that run); it renews at %s",
		now.Left, now.Limit, now.Spent, now.Held, now.RenewsAt.Format("2006-01-02 15:04 MST"))
	if now.Left == 0 {
		return []finding{warnf("wait, or raise limits.daily_spend in your own resilience.yaml", "%s", text)}
	}
	return []finding{okf("%s", text)}
}
