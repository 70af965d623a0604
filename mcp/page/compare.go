package page

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"reflect"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// Comparison is what differs between two threads.
type Comparison struct {
	A      Side     `json:"a"`
	B      Side     `json:"b"`
	Differ []string `json:"differ"` // members of a side that are not the same
}

// Side is one of two threads that are compared.
type Side struct {
	ThreadID      thread.ID       `json:"thread_id"`
	Name          string          `json:"name,omitempty"`
	Directive     string          `json:"directive"`
	DirectiveHash string          `json:"directive_hash,omitempty"`
	Model         string          `json:"model"`
	Status        thread.State    `json:"status"`
	Limits        *thread.Limits  `json:"limits,omitempty"`
	Inputs        json.RawMessage `json:"inputs,omitempty"`
	Capabilities  []string        `json:"capabilities,omitempty"`
	Cost          thread.Cost     `json:"cost"`
	Seconds       float64         `json:"seconds"` // from its creation to its end, or until now
	Result        string          `json:"result,omitempty"`
	Outputs       json.RawMessage `json:"outputs,omitempty"`
	Error         string          `json:"error,omitempty"`
	Tools         map[string]Used `json:"tools"` // by name
	Damaged       string          `json:"damaged,omitempty"`
}

// Used counts calls of a tool.
type Used struct {
	Calls  int `json:"calls"`
	Failed int `json:"failed,omitempty"`
}

// compare answers with what differs between two threads.
func (p *Page) compare(ctx context.Context, c *call) (any, error) {
	project, err := p.open(ctx, c)
	if err != nil {
		return nil, err
	}
	c.about = clip(c.query("a") + " " + c.query("b"))
	var answer Comparison
	for name, side := range map[string]*Side{"a": &answer.A, "b": &answer.B} {
		id, err := parseID(c.query(name))
		if err != nil {
			return nil, err
		}
		if *side, err = p.sideOf(ctx, project, id); err != nil {
			return nil, err
		}
	}
	answer.Differ, err = differences(answer.A, answer.B)
	return answer, err
}

func (p *Page) sideOf(ctx context.Context, project *Project, id thread.ID) (Side, error) {
	rec, err := find(ctx, project, id)
	if err != nil {
		return Side{}, err
	}
	s := Side{ThreadID: id, Name: rec.Name, Directive: rec.Directive, Model: rec.Model, Status: rec.Status, Cost: rec.Cost}
	end := rec.CompletedAt
	if end.IsZero() {
		end = p.now()
	}
	s.Seconds = max(0, end.Sub(rec.CreatedAt).Seconds())
	if o := rec.Outcome; o != nil {
		s.Result, _ = shorter1(o.Result)
		if o.Error != nil {
			s.Error = o.Error.Message
		}
		if len(o.Outputs) > 0 {
			s.Outputs = shortJSON(o.Outputs)
		}
	}
	meta, err := project.Control.Threads.OwnMeta(id)
	if err != nil {
		s.Damaged = err.Error()
	} else {
		s.DirectiveHash, s.Limits, s.Capabilities, s.Inputs = meta.DirectiveHash, &meta.Limits, meta.Capabilities, shortJSON(meta.Inputs)
	}
	s.Tools, err = toolsOf(ctx, project, id)
	return s, err
}

func shorter1(text string) (string, bool) {
	short, cut := shorter(text, longText)
	return short.(string), cut //nolint:forcetypeassert // a text stays one
}

// shortJSON is a value with its long texts cut.
func shortJSON(v any) json.RawMessage {
	raw, err := plain(v)
	if err != nil {
		return nil
	}
	short, _ := shorten(raw)
	return short
}

// toolsOf counts the calls of tools in a transcript.
func toolsOf(ctx context.Context, project *Project, id thread.ID) (map[string]Used, error) {
	used := map[string]Used{}
	for e, err := range transcript.Events(project.Control.Threads.Transcript(id)) {
		if errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
			break
		}
		if err != nil || e.Type != thread.EventToolCallResult {
			continue
		}
		said, err := transcript.Decode[struct {
			Tool    string `json:"tool"`
			IsError bool   `json:"is_error"`
		}](e)
		if err != nil {
			continue
		}
		n := used[said.Tool]
		n.Calls++
		if said.IsError {
			n.Failed++
		}
		used[said.Tool] = n
	}
	return used, context.Cause(ctx)
}

// differences are the members of two sides that are not the same.
func differences(a, b Side) ([]string, error) {
	var sides [2]map[string]any
	for i, side := range []Side{a, b} {
		raw, err := json.Marshal(side)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &sides[i]); err != nil {
			return nil, err
		}
		delete(sides[i], "thread_id")
	}
	differ := []string{}
	all := maps.Clone(sides[0])
	maps.Copy(all, sides[1])
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(sides[0][name], sides[1][name]) {
			differ = append(differ, name)
		}
	}
	return differ, nil
}
