package expr

import (
	"maps"
	"slices"
)

// Paths lists the paths of the data that the condition looks at.
func (c Condition) Paths() []string {
	var paths []string
	var walk func(n node)
	walk = func(n node) {
		switch n := n.(type) {
		case all:
			for _, part := range n {
				walk(part)
			}
		case anyOf:
			for _, part := range n {
				walk(part)
			}
		case negation:
			walk(n.of)
		case test:
			paths = append(paths, n.path.String())
			if n.right.path != nil {
				paths = append(paths, n.right.path.String())
			}
		}
	}
	walk(c.node)
	return paths
}

// Templates lists the templates in every string within v, keys of maps excepted:
// of each the paths of which the first one that has data counts.
func Templates(v any) [][]string {
	var found [][]string
	switch v := v.(type) {
	case string:
		for _, p := range ParseTemplate(v).parts {
			var paths []string
			for _, one := range p.paths {
				paths = append(paths, one.String())
			}
			if paths != nil {
				found = append(found, paths)
			}
		}
	case []any:
		for _, element := range v {
			found = append(found, Templates(element)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			found = append(found, Templates(v[key])...)
		}
	}
	return found
}
