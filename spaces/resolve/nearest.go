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
	kinds := []item.Kind{kind}
	if kind == "" {
		kinds = item.Kinds()
	}
	var ids []string
	for _, k := range kinds {
		entries, err := r.All(k)
		if err != nil {
			continue
		}
		for _, e := range entries {
			ids = append(ids, e.ID)
		}
	}
	slices.Sort(ids)
	return &NotFoundError{Kind: kind, ID: id, Nearest: nearest(id, slices.Compact(ids))}
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
		distance := editDistance(wanted, lower, most)
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

// editDistance counts the bytes to insert, delete or replace to make b of a
// (Levenshtein). It gives up with most+1 as soon as there are more than most.
func editDistance(a, b string, most int) int {
	if max(len(a)-len(b), len(b)-len(a)) > most {
		return most + 1
	}
	row := make([]int, len(b)+1) // distances of the prefix of a to each prefix of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal, smallest := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
			smallest = min(smallest, row[j+1])
		}
		if smallest > most {
			return most + 1
		}
	}
	return row[len(b)]
}
