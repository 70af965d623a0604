package rag_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
)

// roleVar makes a process of the test binary play a role instead of testing.
const roleVar = "RAG_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := play(role, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Each check writes files; the command line can ask for more.
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const mark = "mark of this place"

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// pathIn is where an index lies in a folder.
func pathIn(dir string) string { return filepath.Join(dir, "memory", "memory.db") }

func open(t testing.TB, path string) *rag.Index {
	t.Helper()
	return openWith(t, rag.At(path, mark))
}

func openWith(t testing.TB, opts rag.Options) *rag.Index {
	t.Helper()
	if opts.Now == nil {
		opts.Now = func() time.Time { return testTime }
	}
	x := rag.New(opts)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return x
}

// row is one of namespace ns and project p.
func row(key, text string, vector ...float32) rag.Row {
	r := rag.Row{Namespace: "ns", Project: "p", Key: key, Text: text, Vector: vector, CreatedAt: testTime}
	if len(vector) > 0 {
		r.Model = "m"
	}
	return r
}

func store(t testing.TB, x *rag.Index, rows ...rag.Row) {
	t.Helper()
	if _, err := x.Store(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
}

func find(t testing.TB, x *rag.Index, q rag.Query) rag.Answer {
	t.Helper()
	answer, err := x.Query(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func ask(text string, vector ...float32) rag.Query {
	q := rag.Query{Namespace: "ns", Project: "p", Text: text, Vector: vector, MinFloor: 0.3, ScoreRatio: 0.7}
	if len(vector) > 0 {
		q.Model = "m"
	}
	return q
}

// keys are those of the hits, separated by blanks.
func keys(a rag.Answer) (all string) {
	for _, h := range a.Hits {
		if all != "" {
			all += " "
		}
		all += h.Key
	}
	return all
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
