package palette

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// pattern is a capability pattern, for ordering only: whether a call is
// allowed is decided by Input.Missing.
type pattern struct {
	text string
	re   *regexp.Regexp // nil: longer than maxPattern, it matches nothing
}

// maxPattern is the length in bytes of the longest pattern that is compared: twice
// what the longest id needs. A directive may have one of megabytes, for which
// there can be no expression.
const maxPattern = 1024

// bySpecificity sorts patterns: those without wildcards first, then by how
// many characters they fix.
func bySpecificity(capabilities []string) []pattern {
	patterns := make([]pattern, len(capabilities))
	for i, c := range capabilities {
		patterns[i].text = c
		if len(c) <= maxPattern {
			expr := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(c))
			patterns[i].re = regexp.MustCompile(`(?s)\A` + expr + `\z`)
		}
	}
	slices.SortStableFunc(patterns, func(a, b pattern) int {
		return cmp.Or(
			cmp.Compare(min(1, a.wildcards()), min(1, b.wildcards())),
			cmp.Compare(len(b.text)-b.wildcards(), len(a.text)-a.wildcards()),
		)
	})
	return patterns
}

func (p pattern) wildcards() int { return strings.Count(p.text, "*") + strings.Count(p.text, "?") }

func (p pattern) matches(required string) bool { return p.re != nil && p.re.MatchString(required) }

// holdsAction says whether some capability may allow a call of the action.
// Search and fetch imply each other. It may say yes too often, as with
// "*.knowledge.*": then the call itself is refused.
func holdsAction(capabilities []string, action string) bool {
	actions := []string{action}
	if action == "fetch" || action == "search" {
		actions = []string{"fetch", "search"}
	}
	for _, c := range capabilities {
		for _, a := range actions {
			if mayStartWith(c, "rye."+a+".") {
				return true
			}
		}
	}
	return false
}

// mayStartWith says whether a pattern matches something that starts with prefix.
func mayStartWith(pattern, prefix string) bool {
	fixed, wild := pattern, false
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		fixed, wild = pattern[:i], true
	}
	return strings.HasPrefix(fixed, prefix) || wild && strings.HasPrefix(prefix, fixed)
}
