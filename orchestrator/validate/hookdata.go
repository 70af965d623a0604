package validate

import (
	"slices"
	"strings"
)

// given reports whether there can be data for one of the paths among those with
// these names. What they are made of is known of inputs only.
func (d *directive) given(names, paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		keys := strings.Split(strings.TrimPrefix(path, "event."), ".")
		if keys[0] == "inputs" && len(keys) > 1 && slices.Contains(names, "inputs") {
			return d.declares(keys[1])
		}
		return slices.Contains(names, keys[0]) || path == "event" || path == "event.name"
	})
}

// dataTry says what data there are, or what to do about an input.
func (d *directive) dataTry(names, paths []string) string {
	name, ok := strings.CutPrefix(paths[len(paths)-1], "inputs.")
	if ok && slices.Contains(names, "inputs") {
		return d.declareOr(name)
	}
	return "there are " + strings.Join(names, ", ") + " and event"
}
