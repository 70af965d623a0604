package eval

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asRecall are the options of a recall with the settings that are shipped.
func asRecall(dir string) Options {
	return Options{
		Dir: dir, Limit: 5, MinFloor: 0.3, ScoreRatio: 0.7, MaxTokens: 2000,
		Now: func() time.Time { return time.Unix(1_700_000_000, 0) },
	}
}

func run(t *testing.T, set Set, o Options) map[rag.Method]Row {
	t.Helper()
	report, err := Run(t.Context(), set, o)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[rag.Method]Row{}
	for _, row := range report.Rows {
		rows[row.By] = row
	}
	return rows
}

// TestCounts: what is found is counted, on a set whose numbers can be told by hand.
func TestCounts(t *testing.T) {
	t.Parallel()
	set := Set{
		Documents: []Document{{"a", "alpha beta"}, {"b", "alpha gamma"}, {"c", "delta"}},
		Questions: []Question{
			{"beta alpha", []string{"a", "c"}}, // finds a
			{"delta", []string{"c"}},
			{"omega", []string{}},
			{"delta?", []string{}}, // finds c
		},
	}
	o := asRecall(t.TempDir())
	o.ScoreRatio = 1
	want := Row{By: rag.ByText, Recall1: 0.75, Recall5: 0.75, Recall10: 0.75, FalseRecall: 0.5, Tokens: 20.0 / 4 / 4, Noise: 5.0 / 20}
	if got := run(t, set, o); len(got) != 1 || got[rag.ByText] != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	o = asRecall(t.TempDir())
	o.Embed = func(_ context.Context, texts []string) (Vectors, error) { // a and delta are alike, the rest is nothing's
		v := Vectors{Model: "m", Tokens: int64(len(texts))}
		for _, text := range texts {
			one := []float32{0.01, 0, 1}
			if strings.HasPrefix(text, "alpha beta") || strings.HasPrefix(text, "delta") {
				one = []float32{1, 0, 0}
			}
			v.Vectors = append(v.Vectors, one)
		}
		return v, nil
	}
	rows := run(t, set, o)
	if len(rows) != 3 || rows[rag.ByVectors].FalseRecall != 1 || rows[rag.ByBoth].Recall5 < rows[rag.ByText].Recall5/2 {
		t.Errorf("rows %+v", rows)
	}
}

// TestSame: the same planting is the same set, and the same set the same report.
func TestSame(t *testing.T) {
	t.Parallel()
	p := Planting{Seed: 3, Facts: 8, Distractors: 40, Unanswerable: 4, Paraphrased: 0.5}
	set := Planted(p)
	if again := Planted(p); !reflect.DeepEqual(set, again) {
		t.Fatal("the same planting is another set")
	}
	p.Seed = 4
	if reflect.DeepEqual(set, Planted(p)) {
		t.Error("another seed is the same set")
	}
	if len(set.Documents) != 48 || len(set.Questions) != 12 {
		t.Errorf("%d documents, %d questions", len(set.Documents), len(set.Questions))
	}
	o := asRecall(t.TempDir())
	o.Embed = newStandIn(1, 0.7).Embed
	first := run(t, set, o)
	o.Dir = t.TempDir()
	if again := run(t, set, o); !reflect.DeepEqual(first, again) || len(first) != 3 {
		t.Errorf("%+v, and again %+v", first, again)
	}
}

// TestRecallGrows: deeper hits find no less, and no number leaves its bounds.
func TestRecallGrows(t *testing.T) {
	t.Parallel()
	o := asRecall("")
	o.Embed = newStandIn(1, 0.7).Embed
	dirs := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		if n++; n > 5 { // one is a database
			return
		}
		o.Dir = dirs + "/" + string(rune('a'+n))
		set := Planted(Planting{
			Seed: rapid.Uint64().Draw(rt, "seed"), Facts: rapid.IntRange(1, 5).Draw(rt, "facts"), Distractors: rapid.IntRange(0, 20).Draw(rt, "distractors"),
			Unanswerable: rapid.IntRange(0, 3).Draw(rt, "unanswerable"), Paraphrased: rapid.Float64Range(0, 1).Draw(rt, "paraphrased"),
		})
		for by, row := range run(t, set, o) {
			if row.Recall1 > row.Recall5 || row.Recall5 > row.Recall10 || row.Recall10 > 1 || row.FalseRecall > 1 || row.Noise > 1 || row.Tokens > 2000 {
				rt.Errorf("%s: %+v", by, row)
			}
		}
	})
}

// TestEndpointTroubles: what an endpoint does wrong ends the evaluation, and says what.
func TestEndpointTroubles(t *testing.T) {
	t.Parallel()
	set := Planted(Planting{Seed: 1, Facts: 2, Distractors: 2, Unanswerable: 1})
	calls := 0
	for want, embed := range map[string]func(texts []string) Vectors{
		"changed its model": func(texts []string) Vectors {
			calls++
			return Vectors{Model: string(rune('a' + calls)), Vectors: slices.Repeat([][]float32{{1, 2}}, len(texts))}
		},
		"changed its model, or the length": func(texts []string) Vectors {
			return Vectors{Model: "m", Vectors: slices.Repeat([][]float32{make([]float32, 2+len(texts)%2)}, len(texts))}
		},
		"texts became 0 vectors": func([]string) Vectors { return Vectors{Model: "m"} },
	} {
		o := asRecall(t.TempDir())
		o.Embed = func(_ context.Context, texts []string) (Vectors, error) {
			v := embed(texts)
			for _, one := range v.Vectors {
				one[0] = 1
			}
			return v, nil
		}
		if _, err := Run(t.Context(), set, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	gone := errors.New("gone")
	o := asRecall(t.TempDir())
	o.Embed = func(context.Context, []string) (Vectors, error) { return Vectors{}, gone }
	if _, err := Run(t.Context(), set, o); !errors.Is(err, gone) {
		t.Errorf("of an endpoint that is gone: %v", err)
	}
	if _, err := Run(t.Context(), Set{}, o); !errors.Is(err, ErrEmpty) {
		t.Errorf("of nothing: %v", err)
	}
}
