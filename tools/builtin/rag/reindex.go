package rag

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type reindexInput struct {
	Namespace string `json:"namespace"`
	Batch     int    `json:"batch,omitempty" jsonschema:"texts of one transaction; default: as one request takes" minimum:"1" maximum:"1000"`
	Cursor    string `json:"cursor,omitempty" jsonschema:"from the answer before; not needed: without it what is left is found"`
}

type reindexOutput struct {
	Namespace string `json:"namespace"`
	Done      bool   `json:"done"`
	Embedded  int    `json:"embedded"`
	Left      int    `json:"left"` // that still lack a vector
	Model     string `json:"model,omitempty"`
	Cursor    string `json:"cursor,omitempty"`
	spent
}

// reindexTime is how long one call goes on to begin batches.
const reindexTime = 45 * time.Second

func reindexTool(d Deps) tool.Tool {
	return with(d, tool.Definition{
		ID: "rye/rag/reindex",
		Description: "Embed texts of a namespace that have no vector of the model of the settings, batch by batch, while queries go on. " +
			"Call again until done is true.",
	}, call.reindex)
}

// reindex embeds what is stale. Nothing is locked while a request is on its way, and
// each batch is kept when it was embedded: a call that is broken off loses one.
func (c call) reindex(ctx context.Context, in reindexInput) (any, error) {
	if err := first(checkNamespace(in.Namespace)); err != nil {
		return nil, err
	}
	after, err := cursorOf(in.Cursor)
	if err != nil {
		return nil, err
	}
	out := reindexOutput{Namespace: in.Namespace}
	release, busy, err := c.Alone()
	if err != nil {
		return nil, err
	}
	if busy {
		out.add("another call embeds the index at the moment; call again when it is through")
		return out, c.count(ctx, &out, Vectors{})
	}
	defer release()
	// Which model answers is only known by its answer.
	total, err := c.Embed(ctx, []string{"model"})
	if err != nil {
		return nil, hard(err)
	}
	out.Model = total.Model
	err = c.batches(ctx, in, after, &out, &total)
	s := spentOf(total)
	out.Cost = s.Cost
	if s.Note != "" {
		out.add(s.Note)
	}
	if err != nil {
		return nil, err
	}
	return out, c.count(ctx, &out, total)
}

// batches embeds batch after batch. A failure after the first one is told beside what
// was done.
func (c call) batches(ctx context.Context, in reindexInput, after int64, out *reindexOutput, total *Vectors) error {
	size := in.Batch
	if size == 0 {
		size = c.Settings.Embedding.Batch
	}
	for until := c.Now().Add(reindexTime); !out.Done && c.Now().Before(until); {
		stale, err := c.Index.Stale(ctx, in.Namespace, total.Model, total.Dimension, after, size)
		if err != nil {
			return err
		}
		if len(stale) == 0 {
			out.Done = true
			return nil
		}
		set, err := c.batch(ctx, stale, total)
		if err != nil && (out.Embedded == 0 || ctx.Err() != nil) {
			return hard(err)
		}
		if err != nil {
			why, soft := unavailable(err)
			if !soft {
				return err
			}
			out.add("broken off: " + why)
			break
		}
		out.Embedded += set
		after = stale[len(stale)-1].ID
	}
	out.Cursor = strconv.FormatInt(after, 10)
	return nil
}

// batch embeds some rows.
func (c call) batch(ctx context.Context, stale []Stale, total *Vectors) (set int, err error) {
	texts, ids := make([]string, len(stale)), make([]int64, len(stale))
	for i, row := range stale {
		texts[i], ids[i] = row.Text, row.ID
	}
	got, err := c.Embed(ctx, texts)
	total.Tokens += got.Tokens
	total.Cost = total.Cost.Plus(got.Cost)
	total.Cut += got.Cut
	if err != nil {
		return 0, err
	}
	if got.Model != total.Model || got.Dimension != total.Dimension {
		return 0, &UnavailableError{Why: "the endpoint answers with another model than a moment ago", Try: "rye-mcp doctor"}
	}
	return c.Index.SetVectors(ctx, got.Model, ids, got.Vectors)
}

// count says how many rows still lack a vector.
func (c call) count(ctx context.Context, out *reindexOutput, now Vectors) error {
	status, err := c.Index.Status(ctx)
	if err != nil {
		return err
	}
	for _, n := range status.Namespaces {
		if n.Name != out.Namespace {
			continue
		}
		out.Left = n.Rows
		for _, m := range n.Models {
			if now.Model == "" || m.Name == now.Model && m.Dimension == now.Dimension {
				out.Left -= m.Rows
			}
		}
	}
	return nil
}

// cursorOf reads a cursor.
func cursorOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 {
		return 0, tool.Faultf(tool.CodeBadArguments, "cursor: this is none that an answer gave").WithHint("leave it out")
	}
	return after, nil
}

type statusInput struct{}

type statusOutput struct {
	Memory    string   `json:"memory"`
	Embedding Endpoint `json:"embedding"`
	Status
	Note string `json:"note,omitempty"`
}

func statusTool(d Deps) tool.Tool {
	return with(d, tool.Definition{
		ID: "rye/rag/status", ReadOnly: true, Description: "What memory keeps, by namespace and model, and where texts are embedded.",
	}, call.status)
}

func (c call) status(ctx context.Context, _ statusInput) (any, error) {
	s, err := c.Index.Status(ctx)
	if err != nil {
		return nil, err
	}
	out := statusOutput{Memory: "on", Embedding: c.Endpoint(ctx), Status: s}
	if out.Namespaces == nil {
		out.Namespaces = []Namespace{}
	}
	for _, n := range s.Namespaces {
		if len(n.Models) > 1 || n.NoVector > 0 && out.Embedding.Why == "" {
			out.Note = fmt.Sprintf("%s has texts without a vector, or of several models, which are not compared: rye/rag/reindex", n.Name)
			break
		}
	}
	return out, nil
}
