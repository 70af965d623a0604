package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// Lost implements [store.Keeper].
func (s *Store) Lost(ctx context.Context) (lost bool, err error) {
	for _, d := range []*database{s.registry, s.ledger} {
		var here bool
		err := d.readAsIs(ctx, func(db *sql.DB) (err error) {
			here, err = isLossy(ctx, db)
			return err
		})
		if err != nil {
			return false, fmt.Errorf("look for lost threads: %w", err)
		}
		lost = lost || here
	}
	return lost, nil
}

// isLossy reads the mark that noteLoss makes.
func isLossy(ctx context.Context, db *sql.DB) (bool, error) {
	var mark int
	err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&mark)
	return mark == lossy, err
}

// hooks are what a program can do about a database that is damaged, or lacks
// rows, while it has it open.
type hooks struct {
	bringBack func(context.Context) error // nil: nobody does
	damaged   func(context.Context, *store.CorruptError)
}

// loss is what a process knows of the rows that a database lacks.
type loss struct {
	hooks hooks
	// Files that lacked rows when they came to be used here, and how many of them
	// had been dealt with when the last rebuilding began.
	seen, mended atomic.Int64
}

// errIncomplete says that rows are missing that can be brought back.
var errIncomplete = errors.New("rows of threads are missing")

// Opened implements [sharedfile.Owner]: it notes a file that is used from now on.
func (l *loss) Opened(userVersion int) {
	if userVersion == lossy {
		l.seen.Add(1)
	}
}

// complete returns errIncomplete while rows are missing that can be brought back.
func (l *loss) complete() error {
	if l.hooks.bringBack != nil && l.seen.Load() != l.mended.Load() {
		return errIncomplete
	}
	return nil
}

// rebuild brings missing rows back, unless another goroutine or process has.
func (l *loss) rebuild(ctx context.Context) error {
	if err := l.hooks.bringBack(ctx); err != nil {
		l.tell(ctx, err) // the other database may be damaged
		return fmt.Errorf("%w: %w", errIncomplete, err)
	}
	return nil
}

// tell passes damage on to those who can do something about it.
func (l *loss) tell(ctx context.Context, err error) {
	if l.hooks.damaged == nil {
		return
	}
	if damage, ok := errors.AsType[*store.CorruptError](err); ok {
		l.hooks.damaged(ctx, damage)
	}
}

func (s *Store) hooks(opts Options) hooks {
	h := hooks{damaged: opts.Damaged}
	if opts.Rebuild != nil {
		h.bringBack = func(ctx context.Context) error { return s.bringBack(ctx, opts.Rebuild) }
	}
	return h
}

// bringBack rebuilds what is missing in both databases. Files that come to be
// used meanwhile are left to the next call.
func (s *Store) bringBack(ctx context.Context, rebuild func(context.Context, *Store) error) error {
	s.rebuilding.Lock()
	defer s.rebuilding.Unlock()
	registry, ledger := s.registry.seen.Load(), s.ledger.seen.Load()
	lost, err := s.Lost(ctx)
	if err == nil && lost {
		err = rebuild(ctx, s)
	}
	if err != nil {
		return err
	}
	s.registry.mended.Store(registry)
	s.ledger.mended.Store(ledger)
	return nil
}
