package board

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/changes"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// ErrOver says that nothing more will be told: the project is being closed.
var ErrOver = errors.New("the board is followed no longer; the project is being closed")

// Deps is what a Keeper works with; all of it belongs to one project.
type Deps struct {
	Threads *threads.Threads
	Feed    *changes.Feed
	// Window is the context window of a model, "provider/model", in tokens; 0: not known.
	Window func(model string) int64
	// AppliedAt is when what has changed in a workspace was last applied; zero: it was not, or
	// that is not known here. It may be nil.
	AppliedAt func(thread.Workspace) time.Time
	// Verify holds what a thread left against its signatures; nil: nothing is verified.
	Verify func(context.Context, thread.ID) (good bool, err error)
	// CheckEvery is the time between two rounds of that; 0 is a second.
	CheckEvery time.Duration
	// Ended is how many threads that have ended are shown; zero: [MostEnded].
	Ended store.EndedMost
}

// Keeper keeps the board of a project.
type Keeper struct {
	Deps

	looking sync.Mutex // one looks at a time
	rows    *shown     // of the last look; nil: there was none

	mu        sync.Mutex
	asked     uint64 // how often something may have changed
	seen      uint64 // how much of that the last look has seen
	followers map[*follower]struct{}
	settled   time.Time // the last round of calls that do not follow
	leave     func()    // ends listening; nil while nobody follows
	closed    bool

	attending sync.WaitGroup
	verdicts  verdicts
}

// New returns the keeper of a project's board. It does nothing before it is asked.
func New(d Deps) *Keeper {
	d.CheckEvery = cmp.Or(d.CheckEvery, time.Second)
	if d.Ended == (store.EndedMost{}) {
		d.Ended = store.EndedMost{Any: MostEnded, Roots: mostEndedRoots}
	}
	return &Keeper{Deps: d, followers: map[*follower]struct{}{}, rows: newShown()}
}

// Options select what of a board is told.
type Options struct {
	// Top is a thread: only it and what is below it; empty: all.
	Top thread.ID
}

// follower is told that something may have changed.
type follower struct {
	woken chan struct{}
	over  chan struct{} // closed when nothing more comes
}

// Since looks, and returns what is new since a version: of an empty one, or one that this
// keeper does not know, the whole board.
func (k *Keeper) Since(ctx context.Context, version string, o Options) (Board, error) {
	k.mu.Lock()
	k.asked++
	alone := len(k.followers) == 0
	k.mu.Unlock()
	if alone && k.settleDue() {
		bounded, cancel := context.WithTimeout(ctx, settleMost)
		k.settle(bounded)
		cancel()
	}
	b, _, err := k.tell(ctx, version, o)
	return b, err
}

// settleMost bounds how long a call that looks and does not follow settles threads: after
// the machine was switched off a thousand may be dead, at some tenths of a second each. The
// rest is shown as it is stored, and settled by later calls.
const settleMost = 2 * time.Second

// settleEvery is the least time between two rounds of calls that look and do not follow.
const settleEvery = time.Second

// settleDue reports whether the threads are to be looked at whose process is gone. A clock
// that was put back has it done at once.
func (k *Keeper) settleDue() bool {
	now := k.Threads.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if since := now.Sub(k.settled); !k.settled.IsZero() && since >= 0 && since < settleEvery {
		return false
	}
	k.settled = now
	return true
}

// settle settles the threads whose process is gone. While somebody follows, the feed does.
func (k *Keeper) settle(ctx context.Context) {
	if _, err := k.Threads.Sweep(ctx); err != nil && ctx.Err() == nil {
		k.Threads.Log.Error().Err(err).Msg("could not settle every thread whose process is gone")
	}
}

// Follow tells at once what is new since a version, see [Keeper.Since], and then each time
// that something has changed, at most once a second, until ctx ends, tell returns an error
// or the project is closed ([ErrOver]). A slow caller is told less often, and misses
// nothing.
func (k *Keeper) Follow(ctx context.Context, version string, o Options, tell func(Board) error) error {
	f, err := k.join(ctx)
	if err != nil {
		return err
	}
	defer k.part(f)
	for first := true; ; first = false {
		b, changed, err := k.tell(ctx, version, o)
		if err != nil {
			return err
		}
		if first || changed {
			if err := tell(b); err != nil {
				return err
			}
			version = b.Version
		}
		select {
		case <-f.woken:
		case <-f.over:
			return ErrOver
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// join adds a follower. The first has the keeper listen for what changes.
func (k *Keeper) join(ctx context.Context) (*follower, error) {
	f := &follower{woken: make(chan struct{}, 1), over: make(chan struct{})}
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return nil, ErrOver
	}
	if k.leave == nil {
		stop, err := k.Feed.Listen(ctx, changes.Topic{Aspect: changes.Any}, k.changed)
		if err != nil {
			k.mu.Unlock()
			return nil, err
		}
		ended := k.attend() //nolint:contextcheck // it serves all who follow, and outlives this one
		k.leave = func() { stop(); ended() }
		k.asked++ // earlier changes are not told
	}
	k.followers[f] = struct{}{}
	k.mu.Unlock()
	return f, nil
}

// attend settles threads whose process is gone, and verifies what has ended, until stop is
// called. The feed, which listens by now, tells what that changes. The caller holds k.mu.
func (k *Keeper) attend() (stop func()) {
	if k.closed {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.attending.Go(func() {
		k.settle(ctx)
		k.verify(ctx)
	})
	return cancel
}

func (k *Keeper) part(f *follower) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.followers, f)
	if len(k.followers) == 0 && k.leave != nil {
		k.leave()
		k.leave = nil
	}
}

// changed is told by the feed that something may have.
func (k *Keeper) changed(over bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	for f := range k.followers {
		if over {
			delete(k.followers, f)
			close(f.over)
			continue
		}
		select {
		case f.woken <- struct{}{}:
		default:
		}
	}
	if over && k.leave != nil {
		k.leave()
		k.leave = nil
	}
}

// Close ends what is done for those who follow, and tells them.
func (k *Keeper) Close() {
	k.mu.Lock()
	for f := range k.followers {
		delete(k.followers, f)
		close(f.over)
	}
	if k.leave != nil {
		k.leave()
		k.leave = nil
	}
	k.closed = true
	k.mu.Unlock()
	k.attending.Wait()
}

// tell looks where something may have changed since the last look, and tells what is new
// since a version. A look that begins after a call serves it, whoever makes it.
func (k *Keeper) tell(ctx context.Context, version string, o Options) (b Board, changed bool, err error) {
	k.looking.Lock()
	defer k.looking.Unlock()
	if err := context.Cause(ctx); err != nil {
		return Board{}, false, err
	}
	k.mu.Lock()
	asked, due := k.asked, k.asked != k.seen
	k.mu.Unlock()
	if due {
		if err := k.look(ctx); err != nil {
			return Board{}, false, threads.Fault(err)
		}
		k.mu.Lock()
		k.seen = asked
		k.mu.Unlock()
	}
	top, err := k.topOf(ctx, o.Top)
	if err != nil {
		return Board{}, false, err
	}
	b, changed = k.rows.since(version, top)
	return b, changed, nil
}

// topOf is the key of the row of a thread; empty for none.
func (k *Keeper) topOf(ctx context.Context, id thread.ID) (thread.ID, error) {
	if id == "" {
		return "", nil
	}
	if key, ok := k.rows.keys[id]; ok {
		return key, nil
	}
	if _, err := k.Threads.Store.Get(ctx, id); err != nil {
		return "", k.Threads.NoThread(ctx, id)
	}
	return "", threads.Fault(&notShownError{id})
}
