package resolve

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// maxNearest is how many ids a [NotFoundError] suggests at most.
const maxNearest = 5

// notFound makes the error for an id that no space has; kind is empty when any
// was asked for. Suggestions are a courtesy: a space that cannot be listed
// gives none.
func (r *Resolver) notFound(kind item.Kind, id string) error {
	missing := &NotFoundError{Kind: kind, ID: id, Space: r.only, Meant: withoutPath(id)}
	var ids []string
	for _, k := range item.Kinds() {
		entries, err := r.All(k)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if kind != "" && k != kind {
				if e.ID == missing.Meant && !slices.Contains(missing.Others, k) {
					missing.Others = append(missing.Others, k)
				}
				continue
			}
			if item.IsPlain(e.ID) { // an id is the name of a file, and can be a sentence
				ids = append(ids, e.ID)
			}
		}
	}
	slices.Sort(ids)
	missing.Nearest = nearest(missing.Meant, slices.Compact(ids))
	return missing
}

// withoutPath is the id that is meant by the path of an item's file: people and models
// write those.
func withoutPath(id string) string {
	below, isPath := strings.CutPrefix(id, ".ai/")
	for _, kind := range item.Kinds() {
		for _, ext := range kind.Extensions() {
			if name, is := strings.CutSuffix(below, ext); is && name != "" {
				below, isPath = name, true
			}
		}
	}
	if !isPath {
		return id
	}
	for _, kind := range item.Kinds() {
		if name, is := strings.CutPrefix(below, kind.Dir()+"/"); is {
			return name
		}
	}
	return below
}

// nearest returns the ids that id may have been meant to be, best first: those
// a few edits away, then those with the same last segment in another folder.
func nearest(id string, ids []string) []string {
	type candidate struct {
		id       string
		distance int
	}
	wanted := strings.ToLower(id)
	// A third of the letters wrong is still a typing error, more is another word.
	most := max(2, len(wanted)/3)
	var candidates []candidate
	for _, other := range ids {
		lower := strings.ToLower(other)
		distance := item.EditDistance(wanted, lower, most)
		if distance > most {
			if path.Base(lower) != path.Base(wanted) {
				continue
			}
			distance = most + 1
		}
		candidates = append(candidates, candidate{other, distance})
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var best []string
	for _, c := range candidates[:min(maxNearest, len(candidates))] {
		best = append(best, c.id)
	}
	return best
}
