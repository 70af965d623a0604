package eval

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
)

// Vectors are what texts became.
type Vectors struct {
	Model   string
	Vectors [][]float32
	Tokens  int64 // that were billed
}

// Options say how a set is asked.
type Options struct {
	// Dir is an empty folder for the index.
	Dir string
	// Embed makes vectors; nil: words alone are looked for.
	Embed func(ctx context.Context, texts []string) (Vectors, error)
	// Limit, MinFloor, ScoreRatio and MaxTokens are those of a recall.
	Limit                int
	MinFloor, ScoreRatio float64
	MaxTokens            int
	Now                  func() time.Time
}

// Report says what was found.
type Report struct {
	Documents  int `json:"documents"`
	Questions  int `json:"questions"`
	Unanswered int `json:"unanswerable"` // questions without evidence
	// Model has made the vectors, of so many dimensions and for so many tokens; empty:
	// there are none.
	Model       string `json:"model,omitempty"`
	Dimension   int    `json:"dimension,omitempty"`
	EmbedTokens int64  `json:"embedding_tokens,omitempty"`
	Rows        []Row  `json:"methods"`
}

// Row is one way to look for texts. Recall is the share of the evidence that is among the
// first hits, of the questions that have any: its mean. The floor and the ratio hold for
// all numbers.
type Row struct {
	By       rag.Method `json:"method"`
	Recall1  float64    `json:"recall_at_1"`
	Recall5  float64    `json:"recall_at_5"`
	Recall10 float64    `json:"recall_at_10"`
	// FalseRecall is the share of the questions without evidence for which something comes
	// back all the same.
	FalseRecall float64 `json:"false_recall"`
	// Tokens is what a recall puts into a prompt on average, at four bytes a token, and
	// Noise the share of it that is no evidence.
	Tokens float64 `json:"tokens"`
	Noise  float64 `json:"noise"`
}

const (
	namespace = "eval"
	deepest   = 10  // of the recalls that are counted
	batch     = 256 // documents that are embedded and stored together
)

// Run asks the questions of a set in an index of their own.
func Run(ctx context.Context, set Set, o Options) (report Report, err error) {
	if len(set.Documents) == 0 || len(set.Questions) == 0 {
		return report, ErrEmpty
	}
	index := rag.New(rag.At(filepath.Join(o.Dir, "eval.db"), ""))
	defer func() { err = errors.Join(err, index.Close()) }()
	report = Report{Documents: len(set.Documents), Questions: len(set.Questions)}
	for _, q := range set.Questions {
		if len(q.Evidence) == 0 {
			report.Unanswered++
		}
	}
	e := &evaluation{Options: o, set: set, index: index, report: &report}
	if err := e.store(ctx); err != nil {
		return report, err
	}
	if err := e.embedQuestions(ctx); err != nil {
		return report, err
	}
	methods := []rag.Method{rag.ByText}
	if o.Embed != nil {
		methods = append(methods, rag.ByVectors, rag.ByBoth)
	}
	for _, by := range methods {
		row, err := e.ask(ctx, by)
		if err != nil {
			return report, err
		}
		report.Rows = append(report.Rows, row)
	}
	return report, nil
}

// evaluation is a set that is asked.
type evaluation struct {
	Options
	set     Set
	index   *rag.Index
	report  *Report
	vectors [][]float32 // of the questions
}

// store puts the documents into the index.
func (e *evaluation) store(ctx context.Context) error {
	for part := range slices.Chunk(e.set.Documents, batch) {
		rows := make([]rag.Row, len(part))
		texts := make([]string, len(part))
		for i, d := range part {
			rows[i] = rag.Row{Namespace: namespace, Key: d.ID, Text: d.Text, CreatedAt: e.Now()}
			texts[i] = d.Text
		}
		vectors, err := e.embed(ctx, texts)
		if err != nil {
			return err
		}
		for i, v := range vectors {
			rows[i].Model, rows[i].Vector = e.report.Model, v
		}
		if _, err := e.index.Store(ctx, rows); err != nil {
			return fmt.Errorf("store documents: %w", err)
		}
	}
	return nil
}

func (e *evaluation) embedQuestions(ctx context.Context) error {
	for part := range slices.Chunk(e.set.Questions, batch) {
		texts := make([]string, len(part))
		for i, q := range part {
			texts[i] = q.Text
		}
		vectors, err := e.embed(ctx, texts)
		if err != nil {
			return err
		}
		e.vectors = append(e.vectors, vectors...)
	}
	return nil
}

// ErrModelChanged says that an endpoint has begun to use another model meanwhile.
var ErrModelChanged = errors.New("the endpoint has changed its model, or the length of its vectors, while the set was embedded")

// embed makes vectors of texts; none without a model.
func (e *evaluation) embed(ctx context.Context, texts []string) ([][]float32, error) {
	if e.Embed == nil {
		return nil, nil
	}
	got, err := e.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	if len(got.Vectors) != len(texts) {
		return nil, fmt.Errorf("%d texts became %d vectors", len(texts), len(got.Vectors))
	}
	r := e.report
	if r.Model == "" {
		r.Model, r.Dimension = got.Model, len(got.Vectors[0])
	}
	if got.Model != r.Model || len(got.Vectors[0]) != r.Dimension {
		return nil, fmt.Errorf("%w: from %s (%d) to %s (%d)", ErrModelChanged, r.Model, r.Dimension, got.Model, len(got.Vectors[0]))
	}
	r.EmbedTokens += got.Tokens
	return got.Vectors, nil
}

// ask asks all questions in one way.
func (e *evaluation) ask(ctx context.Context, by rag.Method) (Row, error) {
	row := Row{By: by}
	var tokens, noise int
	for i, q := range e.set.Questions {
		deep, err := e.query(ctx, by, i, max(deepest, e.Limit), 0)
		if err != nil {
			return row, err
		}
		told, err := e.query(ctx, by, i, e.Limit, e.MaxTokens)
		if err != nil {
			return row, err
		}
		for _, h := range told {
			tokens += len(h.Text)
			if !slices.Contains(q.Evidence, h.Key) {
				noise += len(h.Text)
			}
		}
		if len(q.Evidence) == 0 {
			row.FalseRecall += min(1, float64(len(told)))
			continue
		}
		row.Recall1 += found(q.Evidence, deep, 1)
		row.Recall5 += found(q.Evidence, deep, 5)
		row.Recall10 += found(q.Evidence, deep, deepest)
	}
	answerable := float64(max(1, e.report.Questions-e.report.Unanswered))
	row.Recall1, row.Recall5, row.Recall10 = row.Recall1/answerable, row.Recall5/answerable, row.Recall10/answerable
	row.FalseRecall /= float64(max(1, e.report.Unanswered))
	row.Tokens = float64(tokens) / bytesPerToken / float64(e.report.Questions)
	row.Noise = float64(noise) / float64(max(1, tokens))
	return row, nil
}

// bytesPerToken makes an estimate of tokens from bytes, as the index does.
const bytesPerToken = 4

func (e *evaluation) query(ctx context.Context, by rag.Method, i, limit, tokens int) ([]rag.Hit, error) {
	q := rag.Query{Namespace: namespace, Limit: limit, MaxTokens: tokens, MinFloor: e.MinFloor, ScoreRatio: e.ScoreRatio}
	if by != rag.ByVectors {
		q.Text = e.set.Questions[i].Text
	}
	if by != rag.ByText {
		q.Vector, q.Model = e.vectors[i], e.report.Model
	}
	answer, err := e.index.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("question %d: %w", i+1, err)
	}
	return answer.Hits, nil
}

// found is the share of the evidence that is among the first hits.
func found(evidence []string, hits []rag.Hit, first int) float64 {
	n := 0
	for _, h := range hits[:min(first, len(hits))] {
		if slices.Contains(evidence, h.Key) {
			n++
		}
	}
	return float64(n) / float64(len(evidence))
}
