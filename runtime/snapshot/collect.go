package snapshot

import (
	"context"
	"errors"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
)

// Grace is how long a content is kept that no thread's snapshot names: that of a start
// whose thread is not there yet. A snapshot that was used less than half of it ago is
// used without a note, see [Maker.Make].
const Grace = 24 * time.Hour

// CrashCollected comes after a content was removed, and before the next.
const CrashCollected thread.Crashpoint = "snapshot.collected"

// Collector removes what no thread works by any more.
type Collector struct {
	Store Store
	Seal  func() *place.Seal
	// Exists reports whether there is a thread.
	Exists      func(ctx context.Context, id thread.ID) (bool, error)
	Now         func() time.Time
	Crashpoints thread.Crashpoints
}

// Collected is what was removed.
type Collected struct {
	Contents int
	Bytes    int64
}

// Collect removes contents that are part of no snapshot that a thread works by, and that
// were not used for [Grace]. Of several that collect at the same time each does a part.
//
// Contents of a snapshot were used no earlier than its manifest. So those of one that was
// just made, whose thread is not there yet, stay as long as that.
func (c *Collector) Collect(ctx context.Context) (done Collected, err error) {
	before := c.Now().Add(-Grace)
	needed, err := c.needed(ctx, before)
	if err != nil {
		return done, err
	}
	var unneeded []Blob
	for b, err := range c.Store.All(ctx) {
		if err != nil {
			return done, err
		}
		if !needed[b.Hash] && b.UsedAt.Before(before) {
			unneeded = append(unneeded, b)
		}
	}
	for _, b := range unneeded {
		removed, err := c.Store.Remove(ctx, b.Hash, before)
		if err != nil {
			return done, err
		}
		if removed {
			done.Contents++
			done.Bytes += b.Size
			c.Crashpoints.At(CrashCollected)
		}
	}
	return done, nil
}

// needed are the contents that threads work by, with the manifests. A manifest that cannot
// be used keeps itself and nothing else: no thread can work by it.
func (c *Collector) needed(ctx context.Context, before time.Time) (map[Hash]bool, error) {
	needed := map[Hash]bool{}
	for ref, err := range c.Store.Named(ctx) {
		if err != nil {
			return nil, err
		}
		there, err := c.Exists(ctx, ref.Thread)
		if err != nil {
			return nil, err
		}
		if there || !ref.At.Before(before) {
			needed[ref.Snapshot] = true
		} else if err := c.Store.Forget(ctx, ref.Thread); err != nil {
			return nil, err
		}
	}
	var manifests []Hash
	for h := range needed {
		manifests = append(manifests, h)
	}
	for _, h := range manifests {
		m, err := Open(ctx, c.Store, c.Seal(), h)
		if errors.Is(err, ErrUnusable) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, f := range m.Files {
			needed[f.Hash] = true
		}
	}
	return needed, nil
}
