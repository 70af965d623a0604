package eval

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
)

// BenchmarkRatioRetrieval prints how good recall is, on generated facts among distractors,
// with questions in the words of the facts, with questions of which six words in ten are
// other ones, and with such that name a value as well, which vectors do not know. The
// vectors are of a stand-in that knows seven synonyms in ten: it shows that the parts fit
// together, and says nothing of a real model, for which there is "rye-mcp memory eval". All
// is seeded, so that the goals are the numbers, rounded up.
func BenchmarkRatioRetrieval(b *testing.B) {
	for _, set := range []struct {
		name        string
		paraphrased float64
		named       bool
		goals       map[rag.Method][]float64 // missed at 1, 5 and 10, false recall, tokens
	}{
		{"in the same words", 0, false, map[rag.Method][]float64{rag.ByText: {14, 1}, rag.ByVectors: {16, 1}, rag.ByBoth: {16, 1}}},
		{"in other words", 0.6, false, map[rag.Method][]float64{
			rag.ByText: {96, 74, 63, 100, 128}, rag.ByVectors: {62, 34, 15, 50, 96}, rag.ByBoth: {65, 33, 14, 50, 101},
		}},
		{"in other words, with a value", 0.6, true, map[rag.Method][]float64{rag.ByText: {1, 1, 1}, rag.ByVectors: {61, 31, 12}, rag.ByBoth: {9, 8, 8}}},
	} {
		p := Standard()
		p.Paraphrased = set.paraphrased
		planted, o := Planted(p), asRecall(b.TempDir())
		o.Embed = newStandIn(1, 0.7).Embed
		if set.named {
			planted, o.Embed = withValues(planted), blindToValues(o.Embed)
		}
		report, err := Run(b.Context(), planted, o)
		if err != nil {
			b.Fatal(err)
		}
		for _, row := range report.Rows {
			for i, goal := range set.goals[row.By] {
				show(b, measures(row)[i], set.name, row.By, goal)
			}
		}
	}
}

// valueOf finds the value in the text of a fact.
func valueOf(text string) string { return regexp.MustCompile(`\b[a-z]\d+\b`).FindString(text) }

// withValues lets each question name the value of its fact too, as people name ids.
func withValues(set Set) Set {
	values := map[string]string{}
	for _, d := range set.Documents {
		values[d.ID] = valueOf(d.Text)
	}
	for i, q := range set.Questions {
		if len(q.Evidence) > 0 {
			set.Questions[i].Text += " It has " + values[q.Evidence[0]] + "."
		}
	}
	return set
}

type embedding = func(ctx context.Context, texts []string) (Vectors, error)

// blindToValues makes vectors that say nothing of values, as those of models do of ids.
func blindToValues(embed embedding) embedding {
	return func(ctx context.Context, texts []string) (Vectors, error) {
		blind := make([]string, len(texts))
		for i, text := range texts {
			blind[i] = strings.Replace(text, valueOf(text), "", 1)
		}
		return embed(ctx, blind)
	}
}

// measure is a number of a row that should be small.
type measure struct {
	what, unit string
	value      float64
}

func measures(row Row) []measure {
	return []measure{
		{"evidence missed at 1", "percent", 100 * (1 - row.Recall1)},
		{"evidence missed at 5", "percent", 100 * (1 - row.Recall5)},
		{"evidence missed at 10", "percent", 100 * (1 - row.Recall10)},
		{"recalled where nothing answers", "percent", 100 * row.FalseRecall},
		{"tokens of a recall", "tokens", row.Tokens},
	}
}

// show makes a row of the table of cmd/benchtable.
func show(b *testing.B, m measure, set string, by rag.Method, goal float64) {
	names := map[rag.Method]string{rag.ByText: "words alone", rag.ByVectors: "vectors alone", rag.ByBoth: "both fused"}
	b.Run(m.what+", "+set+"/"+names[by]+"/stand-in for a model", func(b *testing.B) {
		for b.Loop() {
			continue // the measuring took place before, once
		}
		b.ReportMetric(m.value, m.unit)
		b.ReportMetric(goal, m.unit+"-goal")
	})
}
