package permission

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// These tests compare the rules with what patterns mean: the set of texts that
// match, written out. Two letters tell every pair of short patterns apart, for a
// third is like one of them that no pattern names.
const (
	letters       = "ab"
	patternLength = 3 // of the patterns of the exhaustive tests
	// Whether two patterns of that length share a text, or one has a text that the
	// other has not, shows in texts no longer than both together.
	textLength = 2 * patternLength
)

// words are all texts over an alphabet up to a length.
func words(alphabet string, length int) []string {
	all := []string{""}
	for begin := 0; length > 0; length-- {
		end := len(all)
		for _, w := range all[begin:end] {
			for _, c := range alphabet {
				all = append(all, w+string(c))
			}
		}
		begin = end
	}
	return all
}

// means is the definition of a pattern, followed to the letter.
func means(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return means(pattern[1:], text) || text != "" && means(pattern, text[1:])
	default:
		return text != "" && (pattern[0] == '?' || pattern[0] == text[0]) && means(pattern[1:], text[1:])
	}
}

// language is which of the texts match, one letter for each.
func language(pattern string, texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		if means(pattern, text) {
			b.WriteByte('1')
		} else {
			b.WriteByte('0')
		}
	}
	return b.String()
}

// share reports whether two languages have a text in common, within whether the
// first is part of the second.
func share(a, b string) bool {
	return slices.ContainsFunc(indexes(a), func(i int) bool { return b[i] == '1' })
}

func within(a, b string) bool {
	return !slices.ContainsFunc(indexes(a), func(i int) bool { return b[i] == '0' })
}

func indexes(language string) []int {
	var at []int
	for i := range language {
		if language[i] == '1' {
			at = append(at, i)
		}
	}
	return at
}

// Every pair of patterns up to a length, against their languages.
func TestPatternPairs(t *testing.T) {
	t.Parallel()
	// "c" stands in no pattern: what matches it, matches because of a wildcard.
	texts, patterns := words(letters+"c", textLength), words(letters+"*?", patternLength)
	languages := make([]string, len(patterns))
	for i, p := range patterns {
		languages[i] = language(p, texts)
		for j, text := range texts {
			if matches(p, text) != (languages[i][j] == '1') {
				t.Errorf("matches(%q, %q) = %v", p, text, matches(p, text))
			}
		}
	}
	for i, a := range patterns {
		for j, b := range patterns {
			if want := share(languages[i], languages[j]); overlap(a, b) != want {
				t.Errorf("overlap(%q, %q) = %v", a, b, !want)
			}
			switch want := within(languages[j], languages[i]); {
			case covers(a, b) && !want:
				t.Errorf("%q does not match all that %q matches", a, b)
			case !covers(a, b) && want && !strings.Contains(a, "?"):
				t.Errorf("%q matches all that %q matches", a, b)
			}
		}
	}
}

// sets draws small sets of patterns over letters.
func sets() *rapid.Generator[[]string] {
	return rapid.SliceOfN(rapid.StringMatching(`[ab*?]{0,4}`), 0, 3)
}

// A grant allows exactly what is in the language of its own set and in that of
// every ancestor.
func TestGrantIsTheIntersection(t *testing.T) {
	t.Parallel()
	texts := words(letters, 5)
	rapid.Check(t, func(rt *rapid.T) {
		g := Grant{Own: sets().Draw(rt, "own"), Ceiling: rapid.SliceOfN(sets(), 0, 3).Draw(rt, "ceiling")}
		for _, text := range texts {
			want := true
			for _, set := range append([][]string{g.Own}, g.Ceiling...) {
				want = want && slices.ContainsFunc(set, func(p string) bool { return means(p, text) })
			}
			if g.Allows(text) != want {
				rt.Fatalf("Allows(%q) = %v", text, !want)
			}
		}
	})
}

// Below one ancestor, what is dropped is exactly what has no effect.
func TestDroppedIsWithoutEffect(t *testing.T) {
	t.Parallel()
	texts := words(letters, 8)
	rapid.Check(t, func(rt *rapid.T) {
		own, above := sets().Draw(rt, "own"), sets().Draw(rt, "above")
		dropped := Grant{Own: own, Ceiling: [][]string{above}}.Dropped()
		for _, p := range own {
			alone := Grant{Own: []string{p}, Ceiling: [][]string{above}}
			if effect := slices.ContainsFunc(texts, alone.Allows); effect == slices.Contains(dropped, p) {
				rt.Fatalf("%q has an effect: %v, dropped: %q", p, effect, dropped)
			}
		}
	})
}

// The grant of a child, by what its directive says and what its parent holds.
func TestForChildByLanguages(t *testing.T) {
	t.Parallel()
	texts := words(letters, 5)
	rapid.Check(t, func(rt *rapid.T) {
		parent := Grant{Own: sets().Draw(rt, "parent"), Ceiling: rapid.SliceOfN(sets(), 0, 2).Draw(rt, "ceiling")}
		declared := item.Permissions{Declared: rapid.Bool().Draw(rt, "declares")}
		if declared.Declared {
			declared.Capabilities = sets().Draw(rt, "declared")
		}
		child := ForChild(declared, &parent)
		for _, text := range texts {
			want := parent.Allows(text)
			if declared.Declared {
				want = want && slices.ContainsFunc(declared.Capabilities, func(p string) bool { return means(p, text) })
			}
			if child.Allows(text) != want {
				rt.Fatalf("the child: Allows(%q) = %v", text, !want)
			}
			root := ForChild(declared, nil)
			if own := slices.ContainsFunc(declared.Capabilities, func(p string) bool { return means(p, text) }); root.Allows(text) != own {
				rt.Fatalf("a root: Allows(%q) = %v", text, !own)
			}
			if len(parent.Own) == 0 && child.Allows(text) {
				rt.Fatalf("a parent that holds nothing gives %q", text)
			}
		}
	})
}

// No pattern, however it is made, costs more than the product of the lengths:
// these would take a matcher that goes back further than a lifetime.
func TestHostilePatterns(t *testing.T) {
	t.Parallel()
	stars, text := strings.Repeat("a*", 2000)+"b", strings.Repeat("a", 4000)
	if matches(stars, text) || covers(stars, text) || overlap(strings.Repeat("a*", 500)+"b", text[:1500]) {
		t.Error("a text without b matches")
	}
	if !matches(strings.Repeat("*", 4000)+"b", text+"b") {
		t.Error("stars do not match")
	}
	// Too large to be looked at: nothing is allowed by overlap, so it says yes.
	if !overlap("b"+strings.Repeat("a*", 1<<20), "a"+strings.Repeat("a*", 1<<20)) {
		t.Error("what is not looked at cannot be ruled out")
	}
}

// The language of a pattern, alone or in a set, does not depend on how the pattern came
// to be; and the three rules agree with each other.
func FuzzPatterns(f *testing.F) {
	for _, seed := range [][3]string{
		{"rye.*", "rye.execute.*", "rye.execute.tool.a"}, {"*?", "?*", "é"}, {"a?b", "a*b", "a\xffb"}, {"", "*", ""}, {"**", "?", "*"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, a, b, text string) {
		inA, inB := matches(a, text), matches(b, text)
		if covers(a, b) && inB && !inA {
			t.Errorf("%q covers %q, and does not match %q", a, b, text)
		}
		valid := strings.ToValidUTF8(text, "") == text
		if valid && inA && inB && !overlap(a, b) {
			t.Errorf("%q and %q match %q and do not overlap", a, b, text)
		}
		g := Grant{Own: []string{a}, Ceiling: [][]string{{b}}}
		if g.Allows(text) && len(g.Dropped()) > 0 && valid {
			t.Errorf("%q is dropped below %q and allows %q", a, b, text)
		}
	})
}
