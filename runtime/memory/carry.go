package memory

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
)

// Carried says what was carried to another place.
type Carried struct {
	Entries int
	Refused int // rows that nobody vouches for, which stay
}

// CarryTo copies all entries, with their history and vectors, into the memory of another
// place, which seals them. An entry of the same key there is replaced. Each is read again
// there. The caller has the locks of both; it can be repeated.
func (b *Book) CarryTo(ctx context.Context, to *Book) (done Carried, err error) {
	keys, refused, err := b.keys(ctx)
	done.Refused = refused
	if err != nil || len(keys) == 0 {
		return done, err
	}
	if to, err = to.made(); err != nil {
		return done, err
	}
	slices.Reverse(keys) // the last of the list was stored first, and stays so
	for some := range slices.Chunk(keys, pageSize) {
		if err := b.carry(ctx, to, some); err != nil {
			return done, err
		}
		done.Entries += len(some)
	}
	return done, nil
}

// keys are those of all entries, the last one stored first.
func (b *Book) keys(ctx context.Context) (keys []string, refused int, err error) {
	refused, err = b.each(ctx, false, func(k kept) error {
		keys = append(keys, k.Key)
		return nil
	})
	return keys, refused, err
}

// carry copies some entries, and reads them again.
func (b *Book) carry(ctx context.Context, to *Book, keys []string) error {
	entries := make([]kept, 0, len(keys))
	err := b.rows(ctx, rag.Listing{Namespace: Namespace, Project: b.Seal.Place(), Keys: keys, Vectors: true}, func(r rag.Row) error {
		k, err := b.opened(r, false)
		if err != nil {
			return err // it was an entry a moment ago
		}
		if k.place = to.Seal.Place(); r.Vector != nil {
			k.model, k.vector = r.Model, r.Vector
		}
		entries = append(entries, k)
		return nil
	})
	if err != nil {
		return err
	}
	slices.Reverse(entries)
	if err := to.store(ctx, entries...); err != nil {
		return err
	}
	there, err := to.among(ctx, keys)
	if err != nil {
		return err
	}
	for _, k := range entries {
		if got, ok := there[k.Key]; !ok || !reflect.DeepEqual(got.Entry, k.Entry) {
			return fmt.Errorf("entry %s of memory is not the same in the new place", k.Key)
		}
	}
	return nil
}

// Empty takes all entries away. Entries that nobody vouches for stay.
func (b *Book) Empty(ctx context.Context) error {
	keys, _, err := b.keys(ctx)
	for some := range slices.Chunk(keys, pageSize) {
		found, err := b.among(ctx, some)
		if err != nil {
			return err
		}
		var said []string
		for _, k := range found {
			said = append(said, saidBy(k.Key, k.Origins, everybody)...)
		}
		if err := b.delete(ctx, Namespace, some...); err != nil {
			return err
		}
		if err := b.deleteSaid(ctx, said); err != nil {
			return err
		}
	}
	return err
}
