package tool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Registry is a fixed set of tools by id. It is safe for concurrent use.
type Registry struct {
	sorted []Tool
	byID   map[string]Tool
}

// NewRegistry makes a registry. An empty id or one that is taken is refused.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{byID: make(map[string]Tool, len(tools)), sorted: slices.Clone(tools)}
	for _, t := range tools {
		id := OutlineOf(t).ID
		if id == "" {
			return nil, errors.New("a tool has no id")
		}
		if _, taken := r.byID[id]; taken {
			return nil, fmt.Errorf("two tools have the id %s", id)
		}
		r.byID[id] = t
	}
	slices.SortFunc(r.sorted, func(a, b Tool) int {
		return cmp.Compare(OutlineOf(a).ID, OutlineOf(b).ID)
	})
	return r, nil
}

// Get returns the tool with that id.
func (r *Registry) Get(id string) (Tool, bool) {
	t, ok := r.byID[id]
	return t, ok
}

// All lists the tools by id.
func (r *Registry) All() []Tool { return slices.Clone(r.sorted) }
