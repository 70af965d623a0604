package permission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Actions are the second part of a capability.
const (
	Execute = "execute"
	Fetch   = "fetch"
	Search  = "search"
	Sign    = "sign"
)

// threadDirective is the capability by which directives of older versions were
// allowed to spawn any child.
const threadDirective = "rye.execute.tool.rye.agent.threads.thread_directive"

// Required is the capability a call needs: rye.<action>.<kind>.<dotted id>.
func Required(action string, kind item.Kind, id string) string {
	return "rye." + action + "." + string(kind) + "." + strings.ReplaceAll(id, "/", ".")
}

// Grant is what a thread may do.
type Grant struct {
	Own     []string   // its own patterns
	Ceiling [][]string // the patterns of every ancestor, nearest first
}

// ForChild is what a thread may do whose directive declares these permissions.
// A child that declares none holds what its parent holds; a root (parent nil)
// that declares none holds nothing. Its ancestors bound what a child declares, so
// that one that holds nothing gives nothing.
func ForChild(declared item.Permissions, parent *Grant) Grant {
	var g Grant
	if parent != nil {
		g.Ceiling = append([][]string{slices.Clone(parent.Own)}, parent.Ceiling...)
	}
	switch {
	case declared.Declared:
		g.Own = slices.Clone(declared.Capabilities)
	case parent != nil:
		g.Own = slices.Clone(parent.Own)
	}
	return g
}

// Allows reports whether the thread may do what needs this capability.
func (g Grant) Allows(required string) bool { return g.Missing(required) == nil }

// Missing says which of the sets lacks the capability; nil when all allow it.
func (g Grant) Missing(required string) *DeniedError {
	return g.missing(required, withSibling(required)...)
}

// CanSpawn returns a *[DeniedError] unless the thread may start a thread of
// that directive. The older capability for the thread_directive tool serves as
// well as rye.execute.directive.<id>.
func CanSpawn(g Grant, directive string) error {
	required := Required(Execute, item.Directive, directive)
	if denied := g.missing(required, required, threadDirective); denied != nil {
		return denied
	}
	return nil
}

// missing finds the first set that allows none of the accepted capabilities.
func (g Grant) missing(required string, accepted ...string) *DeniedError {
	if !allowsAny(g.Own, accepted) {
		return &DeniedError{Capability: required}
	}
	for i, set := range g.Ceiling {
		if !allowsAny(set, accepted) {
			return &DeniedError{Capability: required, Ancestor: i + 1}
		}
	}
	return nil
}

func allowsAny(set, accepted []string) bool {
	return slices.ContainsFunc(set, func(pattern string) bool {
		return slices.ContainsFunc(accepted, func(required string) bool { return matches(pattern, required) })
	})
}

// withSibling adds the capability that implies this one: a thread that may search may
// fetch, and the other way round, since each shows what the other does.
func withSibling(capability string) []string {
	both := []string{capability}
	if rest, ok := strings.CutPrefix(capability, "rye.search."); ok {
		both = append(both, "rye.fetch."+rest)
	} else if rest, ok := strings.CutPrefix(capability, "rye.fetch."); ok {
		both = append(both, "rye.search."+rest)
	}
	return both
}

// Dropped lists the thread's own patterns that can have no effect, because some
// ancestor has no pattern that overlaps with them. It looks at one ancestor at
// a time: a pattern that each of them allows in part, but no call passes them
// all, is not found. It is for telling people, not for deciding.
func (g Grant) Dropped() []string {
	var dropped []string
	for _, own := range g.Own {
		if len(g.DroppedBy(own)) > 0 {
			dropped = append(dropped, own)
		}
	}
	return dropped
}

// DroppedBy lists the ancestors that allow nothing of one of the thread's patterns,
// each of which is reason enough: 1 is its parent.
func (g Grant) DroppedBy(own string) []int {
	reach := withSibling(own)
	if overlap(own, "rye.execute.directive.*") {
		reach = append(reach, threadDirective)
	}
	var by []int
	for i, set := range g.Ceiling {
		if !overlapsAny(set, reach) {
			by = append(by, i+1)
		}
	}
	return by
}

// Effective lists what of the thread's own patterns its ancestors leave, as patterns:
// together with them it allows what the grant allows. Where a pattern and one of an
// ancestor overlap and neither covers the other, no pattern says what is left, and the
// thread's own stands for it.
func (g Grant) Effective() []string {
	left := slices.Clone(g.Own)
	for _, set := range g.Ceiling {
		var next []string
		for _, own := range left {
			for _, p := range leftOf(own, set) {
				if !slices.Contains(next, p) {
					next = append(next, p)
				}
			}
		}
		left = next
	}
	return left
}

// leftOf is what a set of patterns leaves of one.
func leftOf(own string, set []string) []string {
	var narrower []string
	spawns := overlap(own, "rye.execute.directive.*") && allowsAny(set, []string{threadDirective})
	for _, p := range set {
		for _, same := range withSibling(p) {
			switch {
			case spawns || covers(same, own):
				return []string{own}
			case covers(own, same):
				narrower = append(narrower, same)
			case overlap(own, same):
				return []string{own}
			}
		}
	}
	// The older right to start children is met by the newer one of an ancestor.
	if matches(own, threadDirective) && !slices.Contains(narrower, threadDirective) && overlapsAny(set, []string{"rye.execute.directive.*"}) {
		narrower = append(narrower, threadDirective)
	}
	return narrower
}

func overlapsAny(set, patterns []string) bool {
	return slices.ContainsFunc(set, func(a string) bool {
		return slices.ContainsFunc(patterns, func(b string) bool { return overlap(a, b) })
	})
}

// DeniedError says which capability is missing, and where.
type DeniedError struct {
	Capability string
	Ancestor   int // 0: the thread itself; 1: its parent; 2: its grandparent; …
}

func (e *DeniedError) Error() string {
	switch e.Ancestor {
	case 0:
		return fmt.Sprintf("permission denied: this thread lacks the capability %s", e.Capability)
	case 1:
		return fmt.Sprintf("permission denied: the parent of this thread lacks the capability %s", e.Capability)
	default:
		return fmt.Sprintf("permission denied: an ancestor of this thread, %d levels up, lacks the capability %s",
			e.Ancestor, e.Capability)
	}
}
