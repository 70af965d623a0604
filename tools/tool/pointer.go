package tool

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// lookup follows pointer into a decoded document; nil where it leads nowhere.
func lookup(doc any, pointer string) any {
	for _, seg := range item.PointerKeys(pointer) {
		switch d := doc.(type) {
		case map[string]any:
			doc = d[seg]
		case []any:
			i, err := strconv.Atoi(seg)
			if err != nil || i < 0 || i >= len(d) {
				return nil
			}
			doc = d[i]
		default:
			return nil
		}
	}
	return doc
}

func splitPointer(pointer string) (parent, last string) {
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return "", pointer
	}
	return pointer[:i], pointer[i+1:]
}

func lastSegment(pointer string) string {
	_, last := splitPointer(pointer)
	return last
}

func matchesAny(patterns map[string]any, name string) bool {
	for p := range patterns {
		if re, err := regexp.Compile(p); err == nil && re.MatchString(name) {
			return true
		}
	}
	return false
}

// mostCompared is the longest name in bytes that is compared: hostile lengths
// are near nothing.
const mostCompared = 64

// Nearest returns the name of names that name is most likely a slip of, or "".
// About a third of the letters may differ, and at least one; of five it is two,
// which is what it takes to swap two letters.
func Nearest(name string, names []string) string {
	best, least := "", max(1, (len(name)+1)/3)+1
	for _, n := range names {
		if max(len(name), len(n)) > mostCompared {
			continue
		}
		if d := item.EditDistance(name, n, least-1); d < least {
			best, least = n, d
		}
	}
	return best
}

// clip shortens outside text for a message.
func clip(s string) string {
	return item.Clip(s, 80)
}
