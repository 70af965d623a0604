package snapshot

import (
	"bytes"
	"context"
	"errors"

	"github.com/rye-mcp/rye-mcp/spaces/place"
)

// Bring copies a snapshot, contents and manifest, from one store into another, where it is
// not there yet. The manifest comes last: where it is, its contents are, or were when they
// were last used.
func Bring(ctx context.Context, from, to Blobs, seal *place.Seal, name Hash) (*Manifest, error) {
	if missing, err := to.Use(ctx, []Hash{name}); err == nil && len(missing) == 0 {
		if m, err := Open(ctx, to, seal, name); err == nil {
			return m, bringContents(ctx, from, to, m)
		}
	} else if err != nil {
		return nil, err
	}
	data, err := ReadAll(ctx, from, name, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := Decode(data, seal)
	if err != nil {
		if broken, ok := errors.AsType[*ManifestError](err); ok {
			broken.Hash = name
		}
		return nil, err
	}
	if err := bringContents(ctx, from, to, m); err != nil {
		return nil, err
	}
	return m, to.Put(ctx, name, int64(len(data)), bytes.NewReader(data))
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
