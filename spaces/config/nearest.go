package config

import "github.com/rye-mcp/rye-mcp/spaces/item"

// nearest is the name that takes the fewest edits to reach from key, the first
// of several. It is empty when none is close: more than a third of the letters
// would change.
func nearest(key string, names []string) string {
	best, most := "", max(1, len(key)/3)
	for _, name := range names {
		if d := item.EditDistance(key, name, most); d <= most {
			best, most = name, d-1
		}
	}
	return best
}
