package snapshot

import (
	"bytes"
	"context"
	"fmt"

	"github.com/rye-mcp/rye-mcp/spaces/place"
)

// Carry copies a snapshot to where another place keeps its own, signed for that place, and
// returns the name that it has there. Errors are also those of [Open]. It can be repeated.
func (k *Keeper) Carry(ctx context.Context, to *Keeper, name Hash) (there Hash, err error) {
	m, err := k.Open(ctx, name)
	if err != nil {
		return "", err
	}
	from, err := k.store(ctx)
	if err != nil {
		return "", err
	}
	if to.Prepare != nil {
		if err := to.Prepare(); err != nil {
			return "", err
		}
	}
	into, err := to.store(ctx)
	if err != nil {
		return "", err
	}
	if err := bringContents(ctx, from, into, m); err != nil {
		return "", named(err, name)
	}
	if there, err = keepManifest(ctx, into, to.Maker.Seal(), *m); err != nil {
		return "", fmt.Errorf("carry snapshot %s: %w", name.Short(), err)
	}
	return there, to.Verify(ctx, there)
}

// keepManifest signs a manifest and keeps it where its contents are.
func keepManifest(ctx context.Context, in Blobs, seal *place.Seal, m Manifest) (Hash, error) {
	data, name, err := m.Encode(seal)
	if err != nil {
		return "", err
	}
	missing, err := in.Use(ctx, []Hash{name})
	if err == nil && len(missing) > 0 {
		err = in.Put(ctx, name, int64(len(data)), bytes.NewReader(data))
	}
	return name, err
}
