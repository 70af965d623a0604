package palette

import (
	"fmt"
	"slices"
	"strings"
)

// Held is what a thread may do, for [Palette.Tree].
type Held struct {
	Own       []string   // its own patterns
	Ancestors [][]string // those of its ancestors, nearest first
	// Idle are those of its own patterns that can have no effect, because some
	// ancestor allows nothing of what they match.
	Idle []string
}

// Tree says in Markdown what a thread may do: its patterns by action and kind,
// with the tools behind each of them and what became of these, then the patterns
// of the ancestors that bound it. Tools stand below the most specific pattern
// that matches them.
func (p Palette) Tree(h Held) string {
	var b strings.Builder
	if len(h.Own) == 0 {
		b.WriteString("none: every action is denied\n")
	}
	for _, branch := range branches(h.Own) {
		b.WriteString("- " + branch.name + "\n")
		for _, pattern := range branch.patterns {
			b.WriteString("  - `" + pattern + "`")
			if slices.Contains(h.Idle, pattern) {
				b.WriteString(": without effect, an ancestor allows nothing of it")
			}
			b.WriteString("\n")
			p.writeTools(&b, pattern)
		}
	}
	for i, own := range h.Ancestors {
		fmt.Fprintf(&b, "\nBounded by %s:\n\n", ancestor(i+1))
		for _, pattern := range sorted(own) {
			fmt.Fprintf(&b, "- `%s`\n", pattern)
		}
		if len(own) == 0 {
			b.WriteString("none: every action is denied\n")
		}
	}
	p.writeOffer(&b)
	return b.String()
}

// writeTools lists the tools behind a pattern, and what became of them.
func (p Palette) writeTools(b *strings.Builder, pattern string) {
	for _, s := range p.Tools {
		if s.Pattern != pattern {
			continue
		}
		fmt.Fprintf(b, "    - `%s`: ", s.ID)
		switch {
		case s.Denied != nil:
			fmt.Fprintf(b, "denied, %s does not allow it\n", ancestor(s.Denied.Ancestor))
		case s.ByID && s.Problem != "":
			fmt.Fprintf(b, "not offered, %s, reachable through rye_execute\n", oneLine(s.Problem))
		case s.Problem != "":
			fmt.Fprintf(b, "not offered, %s\n", oneLine(s.Problem))
		case s.NoRoom:
			b.WriteString("not offered for lack of room, reachable through rye_execute\n")
		default:
			fmt.Fprintf(b, "offered as `%s`\n", s.Name)
		}
	}
}

// writeOffer lists what the model is offered beside the tools of the tree.
func (p Palette) writeOffer(b *strings.Builder) {
	b.WriteString("\n## Offered to the model\n\n")
	for _, e := range p.Entries {
		if e.Kind == KindTool {
			fmt.Fprintf(b, "- `%s` (%s)\n", e.Name, e.ID)
		} else {
			fmt.Fprintf(b, "- `%s`\n", e.Name)
		}
	}
	if len(p.Entries) == 0 {
		b.WriteString("nothing\n")
	}
}

// branch is the patterns about one action and kind.
type branch struct {
	name     string
	patterns []string
}

// branches groups patterns: by action, then by kind, what is about several of
// them first.
func branches(own []string) []branch {
	var all []branch
	for _, pattern := range sorted(own) {
		name := branchOf(pattern)
		i := slices.IndexFunc(all, func(b branch) bool { return b.name == name })
		if i < 0 {
			i = len(all)
			all = append(all, branch{name: name})
		}
		all[i].patterns = append(all[i].patterns, pattern)
	}
	slices.SortStableFunc(all, func(a, b branch) int { return strings.Compare(a.name, b.name) })
	return all
}

// branchOf names what a pattern is about: "execute tool", "fetch", "any action".
func branchOf(pattern string) string {
	segments := strings.Split(pattern, ".")
	fixed := func(i int) string {
		if i >= len(segments) || strings.ContainsAny(segments[i], "*?") {
			return ""
		}
		return segments[i]
	}
	action := fixed(1)
	if fixed(0) != "rye" || action == "" {
		return "any action"
	}
	if kind := fixed(2); kind != "" {
		return action + " " + kind
	}
	return action
}

func ancestor(level int) string {
	switch level {
	case 0:
		return "the thread itself"
	case 1:
		return "the parent"
	default:
		return fmt.Sprintf("the ancestor %d levels up", level)
	}
}

// sorted returns patterns in order, each once.
func sorted(patterns []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(patterns)))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
