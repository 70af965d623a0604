package snapshot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Keeper makes the snapshots of a project and has those of others ready for the processes
// of threads on this machine. It is safe for concurrent use.
type Keeper struct {
	// Maker makes snapshots in Local.
	Maker *Maker
	Local Store
	// Shared is where the machines of a project share their snapshots; nil: there is one
	// machine.
	Shared  func(context.Context) (Store, error)
	Layouts func() (Layouts, error)
	// Prepare makes the place where snapshots are kept, before the first; it may be nil.
	Prepare func() error
	Now     func() time.Time

	mu   sync.Mutex
	own  *Own
	seen *Pins // of the snapshot that was asked for last
	// shared is the snapshot that was brought to the others last, and when.
	shared   Hash
	sharedAt time.Time
	// current is what the items of this machine were at the last look, and when.
	current   Hash
	currentAt time.Time
}

// Own is the snapshot that the thread of this process works by.
type Own struct {
	Pins   *Pins
	Folder string // where it is laid out; empty: the items of this machine were the same
}

// Works says what the thread of this process works by, see Below.
func (k *Keeper) Works(by Own) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.own, k.seen = &by, by.Pins
}

// IsShared reports whether threads of this project run on several machines.
func (k *Keeper) IsShared() bool { return k.Shared != nil }

// store is where names are kept: with the machines of a project, or here.
func (k *Keeper) store(ctx context.Context) (Store, error) {
	if k.Shared == nil {
		return k.Local, nil
	}
	return k.Shared(ctx)
}

// Take makes a snapshot of the items as they are now, for all machines.
func (k *Keeper) Take(ctx context.Context) (*Pins, error) {
	if k.Prepare != nil {
		if err := k.Prepare(); err != nil {
			return nil, err
		}
	}
	made, err := k.Maker.Make(ctx)
	if err != nil {
		return nil, err
	}
	if err := k.share(ctx, made.Name); err != nil {
		return nil, fmt.Errorf("keep the snapshot of the items: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen, k.current, k.currentAt = made.Pins, made.Name, k.Now()
	return made.Pins, nil
}

// share brings a snapshot of this machine to the others. Within half of the time in which
// that has to be noted, nobody is asked.
func (k *Keeper) share(ctx context.Context, name Hash) error {
	if !k.IsShared() {
		return nil
	}
	now := k.Now()
	k.mu.Lock()
	known := k.shared == name && now.Sub(k.sharedAt) < Grace/4
	k.mu.Unlock()
	if known {
		return nil
	}
	to, err := k.Shared(ctx)
	if err != nil {
		return err
	}
	if err := Bring(ctx, k.Local, to, k.Maker.Seal(), name, now); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shared, k.sharedAt = name, now
	return nil
}

// Pins are those of a snapshot of this machine or another. Errors are those of [Open].
func (k *Keeper) Pins(ctx context.Context, name Hash) (*Pins, error) {
	k.mu.Lock()
	seen := k.seen
	k.mu.Unlock()
	if seen != nil && seen.Name() == name {
		return seen, nil
	}
	m, err := k.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	pins := PinsOf(name, m)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = pins
	return pins, nil
}

// Open reads the manifest of a snapshot of this machine or another.
func (k *Keeper) Open(ctx context.Context, name Hash) (*Manifest, error) {
	m, err := Open(ctx, k.Local, k.Maker.Seal(), name)
	if !k.IsShared() || !errors.Is(err, ErrUnusable) {
		return m, err
	}
	from, err := k.Shared(ctx)
	if err != nil {
		return nil, err
	}
	return Open(ctx, from, k.Maker.Seal(), name)
}

// Verify reads a snapshot with all its contents, and says what is wrong with it.
func (k *Keeper) Verify(ctx context.Context, name Hash) error {
	m, err := k.Open(ctx, name)
	if err != nil {
		return err
	}
	from, err := k.store(ctx)
	if err != nil {
		return err
	}
	done := map[Hash]bool{}
	for _, f := range m.Files {
		if done[f.Hash] {
			continue
		}
		done[f.Hash] = true
		_, err := ReadAll(ctx, k.Local, f.Hash, MaxFileBytes)
		if k.IsShared() && errors.Is(err, ErrUnusable) {
			_, err = ReadAll(ctx, from, f.Hash, MaxFileBytes)
		}
		if err != nil {
			return fmt.Errorf("%s of the %s space: %w", f.Path, f.Space, err)
		}
	}
	return nil
}

// glance is for how long a look at the items of this machine counts. The process of the
// thread finds out what changes within it.
const glance = time.Second

// Ready has a snapshot ready on this machine, for the process of a thread. Folder is where
// its items are laid out; it is empty where the items of this machine are the same.
func (k *Keeper) Ready(ctx context.Context, name Hash) (folder string, err error) {
	if err := k.bring(ctx, name); err != nil {
		return "", err
	}
	if k.isCurrent(ctx, name) {
		return "", nil
	}
	m, err := Open(ctx, k.Local, k.Maker.Seal(), name)
	if err != nil {
		return "", err
	}
	layouts, err := k.Layouts()
	if err != nil {
		return "", err
	}
	return layouts.Materialize(ctx, k.Local, name, m)
}

// Below is Ready for what is started below the thread that this process runs: it finds the
// items where that does, and is refused what was changed since as that is.
func (k *Keeper) Below(ctx context.Context, name Hash) (folder string, err error) {
	k.mu.Lock()
	own := k.own
	k.mu.Unlock()
	if own != nil && own.Pins.Name() == name {
		return own.Folder, nil
	}
	return k.Ready(ctx, name)
}

// bring brings a snapshot of another machine here. One that this machine has just taken is
// here.
func (k *Keeper) bring(ctx context.Context, name Hash) error {
	k.mu.Lock()
	taken := k.current == name
	k.mu.Unlock()
	if !k.IsShared() || taken {
		return nil
	}
	from, err := k.Shared(ctx)
	if err != nil {
		return err
	}
	return Bring(ctx, from, k.Local, k.Maker.Seal(), name, k.Now())
}

// isCurrent reports whether the items of this machine are those of a snapshot. Where they
// cannot be looked at they are not.
func (k *Keeper) isCurrent(ctx context.Context, name Hash) bool {
	k.mu.Lock()
	current, at := k.current, k.currentAt
	k.mu.Unlock()
	if d := k.Now().Sub(at); d < 0 || d > glance {
		made, err := k.Maker.Make(ctx)
		if err != nil {
			return false
		}
		current = made.Name
		k.mu.Lock()
		k.current, k.currentAt = current, k.Now()
		k.mu.Unlock()
	}
	return current == name
}

// Name notes that a thread works by a snapshot, which is kept for as long as the thread is.
func (k *Keeper) Name(ctx context.Context, of thread.ID, name Hash) error {
	in, err := k.store(ctx)
	if err != nil {
		return err
	}
	return in.Name(ctx, of, name)
}

// Forget takes that back.
func (k *Keeper) Forget(ctx context.Context, of thread.ID) error {
	in, err := k.store(ctx)
	if err != nil {
		return err
	}
	return in.Forget(ctx, of)
}

// layoutAge is how long what was laid out is kept that nobody has asked for.
const layoutAge = 7 * 24 * time.Hour

// Collect removes what no thread works by any more: contents, here and where the machines
// share them, and what was laid out here.
func (k *Keeper) Collect(ctx context.Context, exists func(context.Context, thread.ID) (bool, error)) (Collected, error) {
	all, err := k.store(ctx)
	if err != nil {
		return Collected{}, err
	}
	c := &Collector{Store: all, Seal: k.Maker.Seal, Exists: exists, Now: k.Now, Crashpoints: k.Maker.Crashpoints}
	done, err := c.Collect(ctx)
	if err == nil && k.IsShared() {
		// Here they are copies: what is needed again comes again.
		c.Store = copies{k.Local, all}
		var here Collected
		here, err = c.Collect(ctx)
		done.Contents, done.Bytes = done.Contents+here.Contents, done.Bytes+here.Bytes
	}
	if err != nil {
		return done, err
	}
	return done, k.prune(ctx, all)
}

// prune removes what was laid out here for threads that have gone.
func (k *Keeper) prune(ctx context.Context, all Names) error {
	layouts, err := k.Layouts()
	if err != nil {
		return nil // nothing is laid out where there is no place for it
	}
	named := map[Hash]bool{}
	for ref, err := range all.Named(ctx) {
		if err != nil {
			return err
		}
		named[ref.Snapshot] = true
	}
	_, err = layouts.Prune(k.Now().Add(-layoutAge), func(h Hash) bool { return named[h] })
	return err
}

// copies are contents of this machine, and the names of all machines.
type copies struct {
	Blobs
	Names
}
