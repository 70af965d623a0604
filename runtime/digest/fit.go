package digest

import (
	"fmt"
	"slices"
	"strings"
)

// part is a text with a name.
type part struct{ label, text string }

// leastPart is the least room, in bytes, for the text of a part.
const leastPart = 120

// fit is parts within so many bytes. The longer ones give first, all to the same length;
// when there is no room for the least of each the last ones are left out.
func fit(parts []part, room int) string {
	shown := len(parts)
	for shown > 0 && least(parts[:shown], len(parts)-shown) > room {
		shown--
	}
	share := shareOf(parts[:shown], room-overhead(parts[:shown], len(parts)-shown))
	var b strings.Builder
	for _, p := range parts[:shown] {
		b.WriteString(p.label + ":" + placed(within(p.text, share)) + "\n")
	}
	if more := len(parts) - shown; more > 0 {
		b.WriteString(moreOf(more))
	}
	return b.String()
}

// placed is a text behind its label: on the same line, or indented below it.
func placed(text string) string {
	if !strings.Contains(text, "\n") {
		return " " + text
	}
	return "\n  " + strings.ReplaceAll(text, "\n", "\n  ")
}

func moreOf(n int) string { return fmt.Sprintf("(and %d more; the record has them)\n", n) }

// weight is how many bytes a text takes where it is placed.
func weight(text string) int { return len(placed(text)) }

// overhead is what parts take beside their texts.
func overhead(parts []part, left int) int {
	n := 0
	for _, p := range parts {
		n += len(p.label) + len(":\n")
	}
	if left > 0 {
		n += len(moreOf(left))
	}
	return n
}

// least is what parts take at least.
func least(parts []part, left int) int {
	n := overhead(parts, left)
	for _, p := range parts {
		n += min(weight(p.text), leastPart)
	}
	return n
}

// shareOf is the longest that each text may be so that all fit into the room.
func shareOf(parts []part, room int) int {
	sizes := make([]int, len(parts))
	for i, p := range parts {
		sizes[i] = weight(p.text)
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		share := room / (len(sizes) - i)
		if size > share { // the indentation of what is cut is not known before it is
			return share * 3 / 4
		}
		room -= size
	}
	return max(0, slices.Max(append(sizes, 0)))
}
