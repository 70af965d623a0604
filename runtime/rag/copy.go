package rag

import (
	"context"
	"slices"
)

// copied is how many rows are copied together.
const copied = 200

// CopyTo copies the rows of a project, with their vectors, to another index or another
// project, and returns how many there are. A row of the same key there is replaced.
// Namespaces that but says true of are left out. It can be repeated.
func (x *Index) CopyTo(ctx context.Context, to *Index, project, as string, but func(namespace string) bool) (rows int, err error) {
	err = x.eachOf(ctx, project, but, func(namespace string, keys []string) error {
		// The list ends with the oldest, which stays the oldest.
		slices.Reverse(keys)
		for some := range slices.Chunk(keys, copied) {
			found, err := x.List(ctx, Listing{Namespace: namespace, Project: project, Keys: some, Vectors: true})
			if err != nil {
				return err
			}
			var next []Row
			for _, r := range slices.Backward(found) {
				r.Project = as
				next = append(next, r.Row)
			}
			if _, err := to.Store(ctx, next); err != nil {
				return err
			}
			rows += len(next)
		}
		return nil
	})
	return rows, err
}

// Drop deletes the rows of a project, of the namespaces that but does not say true of.
func (x *Index) Drop(ctx context.Context, project string, but func(namespace string) bool) error {
	return x.eachOf(ctx, project, but, func(namespace string, keys []string) error {
		for some := range slices.Chunk(keys, copied) {
			if _, err := x.Delete(ctx, Deletion{Namespace: namespace, Project: project, Keys: some}); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachOf calls do with the keys of a project in each namespace, the last one stored first.
func (x *Index) eachOf(ctx context.Context, project string, but func(namespace string) bool, do func(namespace string, keys []string) error) error {
	all, err := x.Status(ctx)
	if err != nil {
		return err
	}
	for _, n := range all.Namespaces {
		if but(n.Name) {
			continue
		}
		found, err := x.List(ctx, Listing{Namespace: n.Name, Project: project})
		if err != nil {
			return err
		}
		keys := make([]string, len(found))
		for i, r := range found {
			keys[i] = r.Key
		}
		if err := do(n.Name, keys); err != nil {
			return err
		}
	}
	return nil
}
