package rag

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type storeInput struct {
	Namespace string         `json:"namespace" jsonschema:"letters, digits, dots, dashes, underscores"`
	Key       string         `json:"key" jsonschema:"replaces what has it"`
	Text      string         `json:"text"`
	Metadata  map[string]any `json:"metadata,omitempty" jsonschema:"kept with the text"`
}

type storeOutput struct {
	Namespace string `json:"namespace"`
	Key       string `json:"key"`
	Replaced  bool   `json:"replaced"`
	Model     string `json:"model,omitempty"` // that has made the vector
	spent
}

func storeTool(d Deps) tool.Tool {
	return with(d, tool.Definition{
		ID:          "rye/rag/store",
		Description: "Keep a text under a key, to be found by rye/rag/query. For what threads decide and discover there is rye/memory/write.",
	}, call.store)
}

func (c call) store(ctx context.Context, in storeInput) (any, error) {
	if err := first(checkOwn(in.Namespace), checkKey(in.Key), checkText("text", in.Text, maxText)); err != nil {
		return nil, err
	}
	out := storeOutput{Namespace: in.Namespace, Key: in.Key}
	row := Row{
		Namespace: in.Namespace, Key: in.Key, Project: c.Project, Thread: c.Thread, Chain: c.Chain,
		Text: c.cleaned(in.Text, &out.spent), At: c.Now(),
	}
	if clean, taken := c.Clean(c.env, in.Key); taken > 0 || clean != in.Key {
		return nil, tool.Faultf(tool.CodeBadArguments, "key: looks like a secret, and is shown to whoever searches").WithHint("name it by what it is about")
	}
	var err error
	if row.Metadata, err = c.metadata(in.Metadata, &out.spent); err != nil {
		return nil, err
	}
	if err := c.addVector(ctx, &row, &out); err != nil {
		return nil, err
	}
	if out.Replaced, err = c.Index.Store(ctx, row); err != nil {
		return nil, err
	}
	return out, nil
}

// addVector gives a row its vector, unless the row that it replaces has one of the same
// text, which is kept.
func (c call) addVector(ctx context.Context, row *Row, out *storeOutput) error {
	before, is, err := c.Index.Find(ctx, row.Namespace, row.Project, row.Key)
	if err != nil {
		return err
	}
	if is && before.Text == row.Text && before.Model != "" {
		out.Model = before.Model
		return nil
	}
	got, s, err := c.vectorOf(ctx, row.Text, "it is found by its words alone, until rye/rag/reindex")
	if err != nil {
		return err
	}
	out.Cost = s.Cost
	if s.Note != "" {
		out.add(s.Note)
	}
	if len(got.Vectors) == 1 {
		row.Model, row.Dimension, row.Vector = got.Model, got.Dimension, got.Vectors[0]
		out.Model = got.Model
	}
	return nil
}

// metadata is what is kept beside a text, without secrets.
func (c call) metadata(m map[string]any, s *spent) (json.RawMessage, error) {
	if len(m) == 0 {
		return json.RawMessage("{}"), nil
	}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(data) > maxMetadata {
		return nil, tool.Faultf(tool.CodeBadArguments, "metadata: has %d bytes as JSON; at most %d are taken", len(data), maxMetadata).
			WithHint("put what is searched for into the text")
	}
	clean := json.RawMessage(c.cleaned(string(data), s))
	if !json.Valid(clean) {
		return nil, errors.New("bug; metadata without secrets is no JSON")
	}
	return clean, nil
}

type deleteInput struct {
	Namespace string   `json:"namespace"`
	Key       string   `json:"key,omitempty"`
	Keys      []string `json:"keys,omitempty"`
}

type deleteOutput struct {
	Namespace string `json:"namespace"`
	Deleted   int    `json:"deleted"`
	Absent    int    `json:"absent,omitempty"`
}

func deleteTool(d Deps) tool.Tool {
	return with(d, tool.Definition{
		ID: "rye/rag/delete", Description: "Delete texts of this project that rye/rag/store keeps, by key or keys.",
	}, call.remove)
}

func (c call) remove(ctx context.Context, in deleteInput) (any, error) {
	if err := first(checkOwn(in.Namespace)); err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for _, key := range append(in.Keys, in.Key) {
		if key != "" {
			keys[key] = true
		}
	}
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, tool.Faultf(tool.CodeBadArguments, "want key, or keys with 1 to %d of them", maxKeys)
	}
	var list []string
	for key := range keys {
		list = append(list, key)
	}
	n, err := c.Index.Delete(ctx, in.Namespace, c.Project, list)
	if err != nil {
		return nil, err
	}
	return deleteOutput{Namespace: in.Namespace, Deleted: n, Absent: len(list) - n}, nil
}
