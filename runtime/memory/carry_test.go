package memory_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/memory"
	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	entries "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

// TestCarry: entries with their history, vectors and who said them are the same in another
// place, in the same order, again after they were carried once; those that nobody vouches for stay.
// The old place can be emptied then, but for that.
func TestCarry(t *testing.T) {
	t.Parallel()
	from := newScene(t)
	to := sceneIn(t, filepath.Join(t.TempDir(), "other.db"), place.NewSeal(newKey(t, 2), "there"))
	from.Embed = constantVector
	old := from.write(client(), entries.Decision, "Branch", "Every release is cut from the branch stable.")
	from.write(threadWriter("a"), entries.Decision, "Trunk", "Releases are cut from trunk since May.", old.Key)
	from.write(threadWriter("b"), entries.Decision, "Trunk", "Releases are cut from trunk since May.")
	forged := rag.Row{Namespace: memory.Namespace, Key: "forged", Project: "here", Text: "Forged\nnonsense", CreatedAt: from.now}
	if _, err := from.index.Store(t.Context(), []rag.Row{forged}); err != nil {
		t.Fatal(err)
	}
	want := exported(t, from)
	for range 2 {
		got, err := from.CarryTo(t.Context(), to.Book)
		if err != nil || got != (memory.Carried{Entries: 2, Refused: 1}) {
			t.Fatalf("carried %+v, %v", got, err)
		}
		if got := exported(t, to); got != want {
			t.Errorf("there is\n%s\nwant\n%s", got, want)
		}
	}
	rows, err := to.index.List(t.Context(), rag.Listing{Namespace: memory.Namespace, Project: "there", Vectors: true})
	if err != nil || len(rows) != 2 || len(rows[0].Vector) == 0 {
		t.Errorf("rows %+v, %v", rows, err)
	}
	if said, err := to.OfThreads(t.Context(), []thread.ID{"b"}); err != nil || said != 1 {
		t.Errorf("%d entries are also of b, %v", said, err)
	}
	if err := from.Empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := from.index.Status(t.Context())
	if err != nil || len(left.Namespaces) != 1 || left.Namespaces[0].Rows != 1 {
		t.Errorf("left is %+v, %v", left.Namespaces, err)
	}
}

func constantVector(context.Context, string) (memory.Embedded, error) {
	return memory.Embedded{Model: "m", Vector: []float32{0.6, 0.8}}, nil
}

func exported(t *testing.T, s *scene) string {
	t.Helper()
	all, err := s.Export(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(all.Entries)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
