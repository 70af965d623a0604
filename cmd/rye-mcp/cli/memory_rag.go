package cli

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/rag/embed"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	ragtools "github.com/rye-mcp/rye-mcp/tools/builtin/rag"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ragDeps is what the tools rye/rag/* need.
func (p *project) ragDeps(sys System) ragtools.Deps {
	return ragtools.Deps{Open: p.ragSession, Clean: withoutSecrets, Now: sys.Now}
}

// withoutSecrets takes out of a text what must not be kept: the secrets of the thread, and
// what looks like a key.
func withoutSecrets(env tool.Env, text string) (clean string, taken int) {
	clean = env.Masked(text)
	if clean != text {
		taken++
	}
	data, found := recording.Redactor{}.Text([]byte(clean))
	return string(data), taken + found
}

// ragSession opens memory for a call of a tool.
func (p *project) ragSession(ctx context.Context, env tool.Env) (*ragtools.Session, error) {
	opened, on, err := p.memory.open()
	if err != nil || !on {
		return nil, err
	}
	client := p.memory.embedder(opened.settings, env.Purse)
	s := &ragtools.Session{
		Settings: opened.settings, Thread: string(env.ThreadID), Chain: string(env.ThreadID),
		Index: ragIndex{opened.index, func() (string, error) { return p.memory.place(p.state.Make) }},
		Embed: func(ctx context.Context, texts []string) (ragtools.Vectors, error) {
			got, err := client.Embed(ctx, texts)
			return ragtools.Vectors{
				Model: got.Model, Dimension: got.Dimension, Vectors: got.Vectors, Tokens: got.Tokens, Cost: got.Cost, Unpriced: got.Unpriced, Cut: got.Cut,
			}, unavailable(err)
		},
		Endpoint: func(ctx context.Context) ragtools.Endpoint {
			return endpointOf(p.memory.source.Look(ctx, opened.settings.Embedding))
		},
		Alone: func() (func(), bool, error) { return p.memory.alone(ctx, opened.index) },
	}
	if s.Project, err = p.memory.place(p.state.Find); err != nil {
		return nil, err
	}
	if env.ThreadID != "" {
		rec, err := p.store.Get(ctx, env.ThreadID)
		if err != nil {
			return nil, err
		}
		s.Chain = string(cmp.Or(rec.ChainRootID, rec.ThreadID))
	}
	return s, nil
}

// unavailable is an error of a client of embeddings as the tools know it.
func unavailable(err error) error {
	if none, is := errors.AsType[*embed.NoneError](err); is {
		return &ragtools.UnavailableError{Why: none.Why, Try: none.Try, Err: err}
	}
	if failed, is := errors.AsType[*embed.Error](err); is {
		return &ragtools.UnavailableError{Why: failed.Error(), Try: failed.Try(), Err: err}
	}
	if key, is := errors.AsType[*provider.KeyError](err); is {
		return &ragtools.UnavailableError{Why: key.Error(), Try: key.Try(), Err: err}
	}
	return err
}

// endpointOf is where texts are embedded, as tools tell it.
func endpointOf(l embed.Look) ragtools.Endpoint {
	return ragtools.Endpoint{Host: l.Host, Model: l.Model, Why: l.Why, Try: l.Try}
}

// ragIndex is an index as the tools know it.
type ragIndex struct {
	*rag.Index

	made func() (project string, err error) // makes the place that rows are stored under
}

// inputFault is what is wrong with a call, for a model.
func inputFault(err error) error {
	if bad, is := errors.AsType[*rag.InputError](err); is {
		return tool.Faultf(tool.CodeBadArguments, "%w", bad)
	}
	if damage, is := errors.AsType[*rag.DamageError](err); is {
		return tool.Faultf(tool.CodeToolFailed, "the index of memory cannot be used: %w", damage).
			WithTry("name another file in store of ~/.ai/config/agent/memory.yaml, or move %s away", damage.Path)
	}
	return err
}

// Store implements [ragtools.Index].
func (x ragIndex) Store(ctx context.Context, r ragtools.Row) (bool, error) {
	if r.Project == "" {
		var err error
		if r.Project, err = x.made(); err != nil {
			return false, err
		}
	}
	done, err := x.Index.Store(ctx, []rag.Row{{
		Namespace: r.Namespace, Key: r.Key, Project: r.Project, ThreadID: r.Thread, ChainRoot: r.Chain,
		Text: r.Text, Metadata: r.Metadata, Model: r.Model, Dimension: r.Dimension, Vector: r.Vector, CreatedAt: r.At,
	}})
	return done.Replaced > 0, inputFault(err)
}

// Find implements [ragtools.Index].
func (x ragIndex) Find(ctx context.Context, namespace, project, key string) (ragtools.Row, bool, error) {
	found, err := x.List(ctx, rag.Listing{Namespace: namespace, Project: project, Keys: []string{key}, Limit: 1})
	if err != nil || len(found) == 0 {
		return ragtools.Row{}, false, inputFault(err)
	}
	r := found[0]
	return ragtools.Row{Namespace: r.Namespace, Key: r.Key, Project: r.Project, Text: r.Text, Model: r.Model, Dimension: r.Dimension}, true, nil
}

// Any implements [ragtools.Index].
func (x ragIndex) Any(ctx context.Context, namespace, project string) (bool, error) {
	found, err := x.List(ctx, rag.Listing{Namespace: namespace, Project: project, Limit: 1})
	return len(found) > 0, inputFault(err)
}

// Query implements [ragtools.Index].
func (x ragIndex) Query(ctx context.Context, q ragtools.Query) (ragtools.Answer, error) {
	got, err := x.Index.Query(ctx, rag.Query{
		Namespace: q.Namespace, Text: q.Text, Vector: q.Vector, Model: q.Model, Limit: q.Limit, MaxTokens: q.MaxTokens,
		MinFloor: q.MinFloor, ScoreRatio: q.ScoreRatio, Project: q.Project, ExcludeThread: q.ExcludeThread,
	})
	if err != nil {
		return ragtools.Answer{}, inputFault(err)
	}
	answer := ragtools.Answer{By: string(got.By), Rows: got.Rows, OtherModel: got.OtherModel, NoVector: got.NoVector}
	for _, h := range got.Hits {
		answer.Hits = append(answer.Hits, ragtools.Hit{
			Key: h.Key, Score: h.Score, Text: h.Text, Metadata: h.Metadata, Truncated: h.Truncated, ThreadID: h.ThreadID,
			Stored: h.CreatedAt.UTC().Format(time.RFC3339), Elsewhere: q.Project == rag.AllProjects && h.Project != q.Home,
		})
	}
	return answer, nil
}

// Delete implements [ragtools.Index].
func (x ragIndex) Delete(ctx context.Context, namespace, project string, keys []string) (int, error) {
	n, err := x.Index.Delete(ctx, rag.Deletion{Namespace: namespace, Project: project, Keys: keys})
	return n, inputFault(err)
}

// Stale implements [ragtools.Index].
func (x ragIndex) Stale(ctx context.Context, namespace, model string, dimension int, after int64, most int) ([]ragtools.Stale, error) {
	rows, err := x.Index.Stale(ctx, rag.Want{Namespace: namespace, Model: model, Dimension: dimension}, after, most)
	stale := make([]ragtools.Stale, len(rows))
	for i, r := range rows {
		stale[i] = ragtools.Stale{ID: r.ID, Text: r.Text}
	}
	return stale, inputFault(err)
}

// SetVectors implements [ragtools.Index].
func (x ragIndex) SetVectors(ctx context.Context, model string, ids []int64, vectors [][]float32) (int, error) {
	rows := make([]rag.Embedded, len(ids))
	for i, id := range ids {
		rows[i] = rag.Embedded{ID: id, Vector: vectors[i]}
	}
	set, err := x.Index.SetVectors(ctx, model, rows)
	return set, inputFault(err)
}

// Status implements [ragtools.Index].
func (x ragIndex) Status(ctx context.Context) (ragtools.Status, error) {
	got, err := x.Index.Status(ctx)
	s := ragtools.Status{Path: got.Path, Bytes: got.Bytes}
	for _, n := range got.Namespaces {
		named := ragtools.Namespace{Name: n.Name, Rows: n.Rows, Projects: n.Projects, NoVector: n.NoVector}
		for _, m := range n.Models {
			named.Models = append(named.Models, ragtools.Model{Name: m.Name, Dimension: m.Dimension, Rows: m.Rows})
		}
		s.Namespaces = append(s.Namespaces, named)
	}
	return s, inputFault(err)
}
