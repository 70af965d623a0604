package rag_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// A search that looks at codes first has the answer of looking at every vector: of texts of a
// few subjects, of many that are nearly the same, and of a few dimensions.
func TestCodesAgainstScan(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, tt := range []struct{ dimension, subjects, rows int }{{3, 5, 1500}, {48, 40, 1500}, {200, 1, 1000}} {
		t.Run(fmt.Sprint(tt.dimension), func(t *testing.T) {
			t.Parallel()
			x := openWith(t, rag.At(pathIn(t.TempDir()), mark).WithTests(64, nil))
			c, m := newCrowd(tt.dimension, tt.subjects), &reference{}
			r := rand.New(rand.NewPCG(3, 5))
			var rows []rag.Row
			for i := range tt.rows {
				row := row(fmt.Sprintf("%04d", i), "text", c.next()...)
				if i%7 == 0 && i > 0 { // the same vector as another row
					row.Vector = rows[r.IntN(i)].Vector
				}
				row.Project, row.ThreadID = []string{"p", "p", "p", "q"}[r.IntN(4)], fmt.Sprint("t", r.IntN(5))
				row.Metadata = json.RawMessage(fmt.Sprintf(`{"kind":"k%d"}`, r.IntN(200)))
				rows = append(rows, row)
				m.store(row)
			}
			store(t, x, rows...)
			deleted := fmt.Sprint("t", r.IntN(5))
			if _, err := x.Delete(t.Context(), rag.Deletion{Project: rag.AllProjects, ThreadIDs: []string{deleted}}); err != nil {
				t.Fatal(err)
			}
			m.rows = slices.DeleteFunc(m.rows, func(o rag.Row) bool { return o.ThreadID == deleted })
			for i := range 25 {
				q := ask("", c.next()...)
				q.Limit, q.MinFloor, q.ScoreRatio = 1+r.IntN(20), -1, 0
				switch i % 4 {
				case 1:
					q.Project, q.ExcludeThread = rag.AllProjects, "t1"
				case 2:
					q.Where = rag.Where{"kind": {"k1", "k2"}}
				case 3:
					q.Project = "q"
				}
				sameHits(t, find(t, x, q).Hits, m.nearest(q))
			}
		})
	}
}

// sameHits wants the same scores; of rows whose scores are the same, any order.
func sameHits(t *testing.T, got, want []rag.Hit) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d hits, want %d", len(got), len(want))
	}
	for i := range got {
		if d := got[i].Score - want[i].Score; d > 2e-6 || d < -2e-6 {
			t.Fatalf("hit %d is %s %.8f, want %s %.8f", i, got[i].Key, got[i].Score, want[i].Key, want[i].Score)
		}
	}
}
