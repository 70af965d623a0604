package rag

import (
	"encoding/json"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/rag/vector"
)

// checkName accepts what can name something: short text of one line.
func checkName(field, name string, required bool) error {
	switch {
	case name == "" && required:
		return refuse(field, "it is empty; give a name of up to %d bytes", MaxName)
	case len(name) > MaxName:
		return refuse(field, "it has %d bytes; at most %d are accepted", len(name), MaxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return refuse(field, "it has control characters or is no UTF-8; give text of one line")
	}
	return nil
}

func checkNames(fields map[string]string) error {
	for _, field := range []string{"namespace", "key", "project", "thread_id", "chain_root", "model"} {
		name, given := fields[field]
		required := field == "namespace" || field == "key"
		if !given {
			continue
		}
		if err := checkName(field, name, required); err != nil {
			return err
		}
	}
	return nil
}

// checked is a row that can be stored.
type checked struct {
	Row

	unit []float32 // nil: it has no vector
}

func check(r Row) (c checked, err error) {
	err = checkNames(map[string]string{
		"namespace": r.Namespace, "key": r.Key, "project": r.Project,
		"thread_id": r.ThreadID, "chain_root": r.ChainRoot, "model": r.Model,
	})
	switch {
	case err != nil:
		return c, err
	case r.Project == AllProjects:
		return c, refuse("project", "%q stands for all projects; a row is of one", AllProjects)
	case strings.TrimSpace(r.Text) == "":
		return c, refuse("text", "it is empty")
	case len(r.Text) > MaxText:
		return c, refuse("text", "it has %d bytes; at most %d are accepted: store what matters of it, or several rows", len(r.Text), MaxText)
	case !utf8.ValidString(r.Text) || strings.ContainsRune(r.Text, 0):
		return c, refuse("text", "it is not UTF-8 text")
	case r.CreatedAt.UnixMilli() <= 0:
		return c, refuse("created_at", "it is not set")
	}
	if r.Metadata, err = checkMetadata(r.Metadata); err != nil {
		return c, err
	}
	c.Row = r
	if len(r.Vector) == 0 {
		return c, nil
	}
	c.unit, err = checkVector(r.Model, r.Vector)
	if r.Dimension != 0 && r.Dimension != len(r.Vector) {
		return c, refuse("dimension", "it is %d, and the vector has %d", r.Dimension, len(r.Vector))
	}
	return c, err
}

func checkMetadata(m json.RawMessage) (json.RawMessage, error) {
	if len(m) == 0 {
		return json.RawMessage("{}"), nil
	}
	var object map[string]json.RawMessage
	switch err := json.Unmarshal(m, &object); {
	case len(m) > MaxMetadata:
		return nil, refuse("metadata", "it has %d bytes; at most %d are accepted", len(m), MaxMetadata)
	case err != nil || object == nil || !utf8.Valid(m):
		return nil, refuse("metadata", "it is not a JSON object")
	}
	return m, nil
}

func checkVector(model string, v []float32) ([]float32, error) {
	if model == "" {
		return nil, refuse("model", "a vector needs the name of the model that has made it")
	}
	unit, err := vector.Unit(v)
	if err != nil {
		return nil, refuse("vector", "%v", err)
	}
	return unit, nil
}

// isField reports whether a name can stand in a JSON path as it is.
func isField(name string) bool {
	plain := func(r rune) bool {
		return r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) })
}

func (w Where) check() error {
	for name, values := range w {
		if !isField(name) {
			return refuse("where", "%.64q is no name of a field; valid are letters, digits and _", name)
		}
		if len(values) == 0 {
			return refuse("where", "the field %s has no values", name)
		}
	}
	return nil
}

// check returns the query with its defaults, and the vector with the length 1.
func (q Query) check() (Query, error) {
	err := checkNames(map[string]string{
		"namespace": q.Namespace, "project": q.Project, "model": q.Model,
		"thread_id": q.ExcludeThread, "chain_root": q.ExcludeChain,
	})
	if err != nil {
		return q, err
	}
	switch {
	case q.Limit < 0 || q.Limit > MaxLimit:
		return q, refuse("limit", "%d; valid are 1 to %d", q.Limit, MaxLimit)
	case math.IsNaN(q.MinFloor) || q.MinFloor < -1 || q.MinFloor > 1:
		return q, refuse("min_floor", "%v; valid are -1 to 1", q.MinFloor)
	case math.IsNaN(q.ScoreRatio) || q.ScoreRatio < 0 || q.ScoreRatio > 1:
		return q, refuse("score_ratio", "%v; valid are 0 to 1", q.ScoreRatio)
	case q.MaxTokens < 0:
		return q, refuse("max_tokens", "%d; valid are 1 and more, and 0 for no bound", q.MaxTokens)
	case q.Limit == 0:
		q.Limit = DefaultLimit
	}
	if len(q.Vector) > 0 {
		if q.Vector, err = checkVector(q.Model, q.Vector); err != nil {
			return q, err
		}
	}
	return q, q.Where.check()
}
