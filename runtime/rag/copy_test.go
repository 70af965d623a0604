package rag_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
)

// TestCopyTo: rows of a project, with their vectors, are found under the other, in the order
// in which they were stored; those of other projects and of what is left out are not.
func TestCopyTo(t *testing.T) {
	t.Parallel()
	from, to := rag.New(rag.At(filepath.Join(t.TempDir(), "a.db"), "a")), rag.New(rag.At(filepath.Join(t.TempDir(), "b.db"), "b"))
	defer func() { _ = from.Close(); _ = to.Close() }()
	at := time.UnixMilli(1).UTC()
	if _, err := from.Store(t.Context(), []rag.Row{
		{Namespace: "docs", Key: "b", Project: "old", Text: "first", Model: "m", Vector: []float32{1, 0}, CreatedAt: at},
		{Namespace: "docs", Key: "a", Project: "old", Text: "second", CreatedAt: at},
		{Namespace: "docs", Key: "a", Project: "other", Text: "of others", CreatedAt: at},
		{Namespace: "left", Key: "a", Project: "old", Text: "left out", CreatedAt: at},
	}); err != nil {
		t.Fatal(err)
	}
	but := func(namespace string) bool { return namespace == "left" }
	for range 2 {
		if n, err := from.CopyTo(t.Context(), to, "old", "new", but); n != 2 || err != nil {
			t.Fatalf("copied %d, %v", n, err)
		}
	}
	if err := from.Drop(t.Context(), "old", but); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, to, "docs"); !slices.Equal(got, []string{"new:second", "new:first"}) {
		t.Errorf("copied were %q", got)
	}
	if got, err := to.List(t.Context(), rag.Listing{Namespace: "docs", Project: "new", Keys: []string{"b"}, Vectors: true}); err != nil || !slices.Equal(got[0].Vector, []float32{1, 0}) {
		t.Errorf("the vector is of %+v, %v", got, err)
	}
	if got := slices.Concat(texts(t, from, "docs"), texts(t, from, "left")); !slices.Equal(got, []string{"other:of others", "old:left out"}) {
		t.Errorf("left are %q", got)
	}
}

func texts(t *testing.T, x *rag.Index, namespace string) (all []string) {
	t.Helper()
	found, err := x.List(t.Context(), rag.Listing{Namespace: namespace, Project: rag.AllProjects})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		all = append(all, r.Project+":"+r.Text)
	}
	return all
}
