package palette

import (
	"maps"
	"slices"
	"strings"
)

// CapabilityTree renders capability patterns as a nested Markdown list, one
// level a segment, sorted and without repetition, for capabilities.md.
func CapabilityTree(caps []string) string {
	if len(caps) == 0 {
		return "none: every action is denied\n"
	}
	root := node{}
	for _, c := range caps {
		n := root
		for segment := range strings.SplitSeq(c, ".") {
			if n[segment] == nil {
				n[segment] = node{}
			}
			n = n[segment]
		}
	}
	var b strings.Builder
	root.render(&b, 0)
	return b.String()
}

type node map[string]node

func (n node) render(b *strings.Builder, depth int) {
	for _, segment := range slices.Sorted(maps.Keys(n)) {
		b.WriteString(strings.Repeat("  ", depth))
		b.WriteString("- `" + segment + "`\n")
		n[segment].render(b, depth+1)
	}
}
