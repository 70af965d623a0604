package snapshot

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/place"
)

// Bring copies a snapshot from one store into another, where that does not have it: contents
// first, and then the manifest. Where the other has used it less than half of [Grace] ago
// that costs a look.
func Bring(ctx context.Context, from, to Blobs, seal *place.Seal, name Hash, now time.Time) error {
	b, err := to.Stat(ctx, name)
	if err == nil && now.Sub(b.UsedAt) < Grace/2 {
		return nil
	}
	if err != nil && !errors.Is(err, ErrUnusable) {
		return err
	}
	data, err := manifestOf(ctx, to, from, seal, name)
	if err != nil {
		return err
	}
	m, err := Decode(data, seal)
	if err == nil {
		err = bringContents(ctx, from, to, m)
	}
	if err != nil {
		return named(err, name)
	}
	missing, err := to.Use(ctx, []Hash{name})
	if err == nil && len(missing) > 0 {
		err = to.Put(ctx, name, int64(len(data)), bytes.NewReader(data))
	}
	return err
}

// manifestOf reads a manifest from the first of two stores that has it.
func manifestOf(ctx context.Context, first, second Blobs, seal *place.Seal, name Hash) ([]byte, error) {
	data, err := ReadAll(ctx, first, name, maxManifest)
	if err == nil {
		_, err = Decode(data, seal)
	}
	if errors.Is(err, ErrUnusable) {
		return ReadAll(ctx, second, name, maxManifest)
	}
	return data, err
}

func bringContents(ctx context.Context, from, to Blobs, m *Manifest) error {
	sizes := make(map[Hash]int64, len(m.Files))
	var hashes []Hash
	for _, f := range m.Files {
		if _, there := sizes[f.Hash]; !there {
			sizes[f.Hash] = f.Size
			hashes = append(hashes, f.Hash)
		}
	}
	missing, err := to.Use(ctx, hashes)
	if err != nil {
		return err
	}
	for _, h := range missing {
		if err := bringContent(ctx, from, to, h, sizes[h]); err != nil {
			return err
		}
	}
	return nil
}

func bringContent(ctx context.Context, from, to Blobs, h Hash, size int64) (err error) {
	content, err := from.Get(ctx, h)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	return to.Put(ctx, h, size, content)
}

// named is an error about a manifest with the name of that.
func named(err error, name Hash) error {
	if broken, ok := errors.AsType[*ManifestError](err); ok {
		broken.Hash = name
	}
	return err
}
