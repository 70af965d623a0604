package permission

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func TestRequired(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"rye.execute.tool.rye.file-system.write": Required(Execute, item.Tool, "rye/file-system/write"),
		"rye.fetch.knowledge.a":                  Required(Fetch, item.Knowledge, "a"),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestForChild(t *testing.T) {
	t.Parallel()
	declare := func(patterns ...string) item.Permissions {
		return item.Permissions{Declared: true, Capabilities: patterns}
	}
	root := ForChild(declare("rye.execute.tool.rye.bash", "rye.execute.tool.rye.file-system.*", "rye.search.*", "rye.execute.directive.work.*"), nil)
	child := ForChild(declare("rye.execute.tool.rye.bash", "rye.sign.*", "rye.fetch.tool.*", "rye.execute.directive.*"), &root)
	heir := ForChild(item.Permissions{}, &child)
	nothing := ForChild(declare(), &child)
	below := ForChild(declare("rye.*"), &nothing)

	const bash, write = "rye.execute.tool.rye.bash", "rye.execute.tool.rye.file-system.write"
	for name, c := range map[string]struct {
		grant    Grant
		required string
		ancestor int // -1: allowed
	}{
		"root without declaration":        {ForChild(item.Permissions{}, nil), bash, 0},
		"root":                            {root, write, -1},
		"root lacks":                      {root, "rye.sign.tool.a", 0},
		"child declares less":             {child, write, 0},
		"child keeps":                     {child, bash, -1},
		"child declares more":             {child, "rye.sign.tool.a", 1},
		"fetch by search of the parent":   {child, "rye.fetch.tool.a", -1},
		"search by fetch of its own":      {child, "rye.search.tool.a", -1},
		"sign is nobody's sibling":        {child, "rye.execute.knowledge.a", 0},
		"heir holds what the child holds": {heir, bash, -1},
		"heir lacks what the child lacks": {heir, write, 0},
		"heir is bounded above the child": {heir, "rye.sign.tool.a", 2},
		"declares nothing":                {nothing, bash, 0},
		"below nothing":                   {below, bash, 1},
	} {
		denied := c.grant.Missing(c.required)
		switch {
		case c.grant.Allows(c.required) != (denied == nil):
			t.Errorf("%s: Allows and Missing disagree", name)
		case c.ancestor < 0 && denied != nil:
			t.Errorf("%s: %v", name, denied)
		case c.ancestor >= 0 && denied == nil:
			t.Errorf("%s: allowed", name)
		case denied != nil && (denied.Ancestor != c.ancestor || !strings.Contains(denied.Error(), c.required)):
			t.Errorf("%s: %v, want ancestor %d", name, denied, c.ancestor)
		}
	}
	if err := CanSpawn(child, "work/a"); err != nil {
		t.Error(err)
	}
	if denied, ok := errors.AsType[*DeniedError](CanSpawn(child, "play/a")); !ok || denied.Ancestor != 1 {
		t.Errorf("got %v", denied)
	}
}

// A denial says what is missing, and in which of the sets.
func TestDenialMessages(t *testing.T) {
	t.Parallel()
	const lacks = "lacks the capability rye.sign.tool.a"
	all, none := []string{"rye.*"}, []string{"rye.execute.*"}
	for want, g := range map[string]Grant{
		"this thread " + lacks:                              {Own: none, Ceiling: [][]string{none, none}},
		"the parent of this thread " + lacks:                {Own: all, Ceiling: [][]string{none, none}},
		"an ancestor of this thread, 2 levels up, " + lacks: {Own: all, Ceiling: [][]string{all, none, none}},
		"an ancestor of this thread, 3 levels up, " + lacks: {Own: all, Ceiling: [][]string{all, all, nil}},
	} {
		if denied := g.Missing("rye.sign.tool.a"); denied == nil || denied.Error() != "permission denied: "+want {
			t.Errorf("%v, want %s", denied, want)
		}
	}
}

func TestForChildSharesNothing(t *testing.T) {
	t.Parallel()
	parent := Grant{Own: []string{"a"}}
	child := ForChild(item.Permissions{}, &parent)
	child.Own[0] = "*"
	if parent.Own[0] != "a" || child.Ceiling[0][0] != "a" {
		t.Error("a change of the child changed another set")
	}
}

func TestCanSpawnOlderCapability(t *testing.T) {
	t.Parallel()
	older := Grant{Own: []string{threadDirective}}
	if err := CanSpawn(older, "any/thing"); err != nil {
		t.Error(err)
	}
	mixed := Grant{Own: []string{"rye.execute.directive.*"}, Ceiling: [][]string{{threadDirective}}}
	if err := CanSpawn(mixed, "any/thing"); err != nil {
		t.Error(err)
	}
	if older.Allows("rye.execute.directive.any.thing") {
		t.Error("the older capability is for spawning only")
	}
	if CanSpawn(Grant{}, "any/thing") == nil {
		t.Error("no capabilities allow a spawn")
	}
}

func TestDropped(t *testing.T) {
	t.Parallel()
	g := Grant{
		Own: []string{
			"rye.execute.tool.rye.bash", "rye.execute.tool.*", "rye.fetch.knowledge.a.*", "rye.sign.*",
			"rye.execute.directive.a", "*",
		},
		Ceiling: [][]string{{"rye.execute.tool.rye.agent.*", "rye.search.knowledge.*"}, {"rye.*"}},
	}
	want := []string{"rye.execute.tool.rye.bash", "rye.sign.*"}
	if got := g.Dropped(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	g.Ceiling = append(g.Ceiling, []string{"rye.execute.*"})
	for pattern, want := range map[string][]int{"rye.sign.*": {1, 3}, "rye.execute.tool.rye.bash": {1}, "rye.fetch.knowledge.a.*": {3}, "*": nil} {
		if got := g.DroppedBy(pattern); !slices.Equal(got, want) {
			t.Errorf("%s is dropped by %v, want %v", pattern, got, want)
		}
	}
	if got := (Grant{Own: []string{"x"}}).Dropped(); got != nil {
		t.Errorf("a root drops %q", got)
	}
	if got := (Grant{Own: []string{"x"}, Ceiling: [][]string{nil}}).Dropped(); len(got) != 1 {
		t.Errorf("below nothing everything is dropped, got %q", got)
	}
}

// anyPattern draws from a small alphabet, so that matches and near misses are common.
func anyPattern() *rapid.Generator[string] { return rapid.StringMatching(`[ab.é*?]{0,12}`) }

func plain() *rapid.Generator[string] { return rapid.StringMatching(`[ab.é€]{0,12}`) }

func asRegexp(pattern string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.ReplaceAll(strings.ReplaceAll(quoted, `\*`, ".*"), `\?`, ".")
	return regexp.MustCompile(`(?s)\A` + quoted + `\z`)
}

func TestMatchesAgreesWithRegexp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		pattern, text := anyPattern().Draw(rt, "pattern"), plain().Draw(rt, "text")
		if got, want := matches(pattern, text), asRegexp(pattern).MatchString(text); got != want {
			rt.Fatalf("matches(%q, %q) = %v", pattern, text, got)
		}
	})
}

func TestMatchesDoesNotBlowUp(t *testing.T) {
	t.Parallel()
	// A backtracking matcher would need more steps than there is time.
	if matches(strings.Repeat("a*", 500)+"b", strings.Repeat("a", 5000)) {
		t.Error("matched")
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a, b := anyPattern().Draw(rt, "a"), anyPattern().Draw(rt, "b")
		got := overlap(a, b)
		if got != overlap(b, a) {
			rt.Fatalf("overlap of %q and %q depends on the order", a, b)
		}
		text := plain().Draw(rt, "text")
		if matches(a, text) && matches(b, text) && !got {
			rt.Fatalf("%q matches %q and %q", text, a, b)
		}
		// A pattern without wildcards overlaps exactly with what matches it.
		if overlap(text, a) != matches(a, text) {
			rt.Fatalf("overlap(%q, %q) = %v", text, a, !matches(a, text))
		}
	})
	for _, pair := range [][2]string{{"a*b", "b*"}, {"?", ""}, {"a?", "*b?c"}, {"*a", "*b"}} {
		if overlap(pair[0], pair[1]) {
			t.Errorf("%q overlaps", pair)
		}
	}
	if !overlap("a*c", "*b*") {
		t.Error("a*c and *b* do not overlap")
	}
}

// A child may do nothing that its parent may not, whatever either declares.
func TestChildNeverExceedsParent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		set := rapid.SliceOfN(anyPattern(), 0, 3)
		parent := Grant{Own: set.Draw(rt, "own"), Ceiling: rapid.SliceOfN(set, 0, 2).Draw(rt, "ceiling")}
		declared := item.Permissions{Declared: rapid.Bool().Draw(rt, "declared"), Capabilities: set.Draw(rt, "child")}
		child := ForChild(declared, &parent)
		required := plain().Draw(rt, "required")
		if child.Allows(required) && !parent.Allows(required) {
			rt.Fatalf("child may %q and its parent may not", required)
		}
		if !declared.Declared && child.Allows(required) != parent.Allows(required) {
			rt.Fatalf("an heir differs from its parent for %q", required)
		}
		if child.Allows(required) && slices.ContainsFunc(child.Dropped(), func(p string) bool { return matches(p, required) }) &&
			!slices.ContainsFunc(child.Own, func(p string) bool { return matches(p, required) && !slices.Contains(child.Dropped(), p) }) {
			rt.Fatalf("%q is allowed only by patterns that count as dropped", required)
		}
	})
}

func FuzzMatches(f *testing.F) {
	f.Add("rye.*.tool.?", "rye.execute.tool.a")
	f.Add("*?", "\xff")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if !matches("*", text) {
			t.Errorf("* does not match %q", text)
		}
		if !strings.ContainsAny(pattern, "*?") && matches(pattern, text) != (pattern == text) {
			t.Errorf("%q and %q", pattern, text)
		}
	})
}

// The effective set is narrower and, below the same ancestors, allows the same.
func TestEffective(t *testing.T) {
	t.Parallel()
	g := Grant{
		Own:     []string{"rye.execute.tool.*", "rye.execute.tool.rye.bash", "rye.fetch.directive.*", "rye.sign.*", "rye.execute.directive.a.*"},
		Ceiling: [][]string{{"rye.execute.tool.rye.file-system.*", "rye.search.directive.team.*", "rye.execute.tool.rye.agent.threads.thread_directive"}},
	}
	want := "rye.execute.tool.rye.file-system.* rye.execute.tool.rye.agent.threads.thread_directive rye.fetch.directive.team.* rye.execute.directive.a.*"
	if got := strings.Join(g.Effective(), " "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	pattern := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"rye.*", "rye.execute.*", "rye.execute.tool.*", "rye.execute.tool.a*", "rye.execute.tool.?b", "rye.execute.tool.*b", "rye.execute.tool.ab",
			"rye.execute.directive.*", "rye.execute.directive.a", threadDirective, "rye.fetch.*", "rye.fetch.tool.a", "rye.search.tool.*", "rye.search.tool.a"}).Draw(t, "pattern")
	})
	patterns := rapid.SliceOfN(pattern, 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		g := Grant{Own: patterns.Draw(t, "own"), Ceiling: rapid.SliceOfN(patterns, 0, 3).Draw(t, "ceiling")}
		narrow := Grant{Own: g.Effective(), Ceiling: g.Ceiling}
		for _, required := range []string{"rye.execute.tool.a", "rye.execute.tool.ab", "rye.execute.tool.cb", "rye.execute.directive.a", threadDirective,
			"rye.fetch.tool.a", "rye.search.tool.a", "rye.fetch.tool.b", "rye.search.directive.x", "rye.sign.tool.a"} {
			if g.Allows(required) != narrow.Allows(required) {
				t.Fatalf("%s: %t by %v below %v, %t by %v", required, g.Allows(required), g.Own, g.Ceiling, narrow.Allows(required), narrow.Own)
			}
		}
		for _, id := range []string{"a", "b"} {
			if (CanSpawn(g, id) == nil) != (CanSpawn(narrow, id) == nil) {
				t.Fatalf("spawn of %s by %v below %v differs from %v", id, g.Own, g.Ceiling, narrow.Own)
			}
		}
	})
}
