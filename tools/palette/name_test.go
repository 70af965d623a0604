package palette

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFlatName(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"rye/file-system/read": "rye_file_system_read",
		"a.b c":                "a_b_c",
		"7zip/pack":            "_7zip_pack",
		"-x":                   "_x",
	} {
		if got := FlatName(id); got != want {
			t.Errorf("FlatName(%q) = %q, want %q", id, got, want)
		}
	}
	for id, want := range map[string]string{"a/ä": "^a___[0-9a-f]{8}$", "データ/読む": "^_{7}[0-9a-f]{8}$"} {
		if got := FlatName(id); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("FlatName(%q) = %q, want %s", id, got, want)
		}
	}
	if FlatName("a/ä") == FlatName("a/ö") {
		t.Error("letters beyond ASCII are all one")
	}
	long := strings.Repeat("x", 100)
	if a, b := FlatName(long+"/a"), FlatName(long+"/b"); len(a) != maxName || a == b {
		t.Errorf("%s and %s", a, b)
	}
}

func TestCollidingNames(t *testing.T) {
	t.Parallel()
	in := Input{
		Primaries: definitions("rye_execute"), Tools: definitions("rye/bash", "rye/file-system/read"),
		Items: items("a/b-c", "a/b/c", "a/d", "rye-bash", "rye/execute", "rye/bash", "rye/directive/return"),
	}
	names := nameTools(in)
	for id, want := range map[string]string{
		"rye/bash": "rye_bash", "rye/file-system/read": "rye_file_system_read", "a/d": "a_d",
		"a/b-c": withHash("a_b_c", "a/b-c", 0), "a/b/c": withHash("a_b_c", "a/b/c", 0),
		"rye-bash":             withHash("rye_bash", "rye-bash", 0),
		"rye/execute":          withHash("rye_execute", "rye/execute", 0),
		"rye/directive/return": withHash("rye_directive_return", "rye/directive/return", 0),
	} {
		if names[id] != want {
			t.Errorf("%s is called %s, want %s", id, names[id], want)
		}
	}
}

// TestTakenHashes: files with the very names that hashes would give
// keep no tool from having a name.
func TestTakenHashes(t *testing.T) {
	t.Parallel()
	ids := []string{"a/b-c", "a/b/c"}
	for try := range 100 {
		ids = append(ids, withHash("a_b_c", "a/b-c", try))
	}
	names := nameTools(Input{Items: items(ids...)})
	if want := withHash("a_b_c", "a/b-c", 100); names["a/b-c"] != want || len(names) != len(ids) {
		t.Errorf("%d names, a/b-c is called %s, want %s", len(names), names["a/b-c"], want)
	}
}

// anyID draws ids that often flatten to the same name, and ones that are long,
// reserved, or beyond ASCII.
func anyID() *rapid.Generator[string] {
	return rapid.StringMatching(`[ab]([/_.-][ab]){0,3}|a{60,70}|rye[/_-](execute|bash)|[0-9ä]/[öü]{0,2}|rye/read_artifact`)
}

// drawInput draws tools of which some are denied, unreadable or too large.
func drawInput(t *rapid.T) Input {
	ids := rapid.SliceOfNDistinct(anyID(), 0, 30, rapid.ID[string]).Draw(t, "ids")
	cut := rapid.IntRange(0, len(ids)).Draw(t, "built in")
	in := Input{
		Primaries: definitions("rye_execute"), ReadArtifact: definitions("rye_read_artifact")[0],
		Tools: definitions(ids[:cut]...), Items: items(ids[cut:]...),
		Capabilities: rapid.SliceOfN(rapid.SampledFrom([]string{
			"*", "rye.execute.*", "rye.execute.tool.a.*", "rye.execute.tool.a", "rye.execute.tool.a.b.?", "rye.execute.tool.rye.*",
		}), 1, 4).Draw(t, "capabilities"),
		MaxTokens: rapid.IntRange(-1, 120).Draw(t, "tokens"),
	}
	for i := range in.Tools {
		in.Tools[i].Description = strings.Repeat("d", rapid.IntRange(0, 60).Draw(t, "description"))
	}
	in.Missing = within(1, append(rapid.SliceOf(rapid.SampledFrom(in.Capabilities)).Draw(t, "parent's"), "rye.execute.tool.b.*")...)
	return in
}

func TestPaletteProperties(t *testing.T) {
	t.Parallel()
	valid := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		p := Build(in)
		seen, used := map[string]bool{}, 0
		for _, e := range p.Entries {
			if !valid.MatchString(e.Name) || seen[e.Name] {
				t.Fatalf("name %q of %s", e.Name, e.ID)
			}
			seen[e.Name] = true
			if e.Kind == KindTool {
				used += len(e.Name) + len(e.Definition.Description) + len(e.Definition.Schema)
				if in.Missing(Required(e.ID)) != nil || reservedNames(in)[e.Name] {
					t.Fatalf("%s is offered as %s", e.ID, e.Name)
				}
			} else if e.Name != e.ID {
				t.Fatalf("%s is called %s", e.ID, e.Name)
			}
		}
		if budget := cmp.Or(in.MaxTokens, DefaultMaxTokens) * bytesPerToken; used > max(0, budget) {
			t.Fatalf("%d bytes for a budget of %d", used, budget)
		}
		checkOrder(t, in, p)
		checkNamesStand(t, in, p)
	})
}

// checkOrder checks that tools were given room by the specificity of patterns,
// and that each that a pattern matches has exactly one fate.
func checkOrder(t *rapid.T, in Input, p Palette) {
	patterns, last, told := bySpecificity(in.Capabilities), -1, map[string]bool{}
	for _, s := range p.Tools {
		rank := slices.IndexFunc(patterns, func(p pattern) bool { return p.text == s.Pattern })
		if s.Pattern == "" {
			rank = len(patterns)
		}
		if rank < last {
			t.Fatalf("%s comes behind broader patterns", s.ID)
		}
		last, told[s.ID] = rank, true
		fates := 0
		for _, fate := range []bool{s.Name != "", s.Denied != nil, s.Problem != "", s.NoRoom} {
			if fate {
				fates++
			}
		}
		if fates != 1 {
			t.Fatalf("%+v", s)
		}
	}
	for _, id := range idsOf(in.Tools, in.Items) {
		matched := slices.ContainsFunc(patterns, func(p pattern) bool { return p.matches(Required(id)) })
		if matched && !told[id] {
			t.Fatalf("nothing is said about %s", id)
		}
	}
}

// checkNamesStand checks that neither the order of the input nor capabilities,
// permissions or budget change what a tool is called.
func checkNamesStand(t *rapid.T, in Input, p Palette) {
	other := in
	other.Tools = rapid.Permutation(in.Tools).Draw(t, "tools")
	other.Items = rapid.Permutation(in.Items).Draw(t, "items")
	if again := Build(other); !slices.EqualFunc(again.Entries, p.Entries, func(a, b Entry) bool { return a.Name == b.Name && a.ID == b.ID }) {
		t.Fatalf("another order gives %s instead of %s", show(again), show(p))
	}
	other.Missing, other.Capabilities, other.MaxTokens = allowAll, []string{"*"}, 1<<20
	everything := Build(other)
	for _, e := range p.Entries {
		if got, ok := everything.Get(e.Name); !ok || got.ID != e.ID {
			t.Fatalf("%s is called %s only among few", e.ID, e.Name)
		}
	}
}

// Other tools change the name of one only where they share its flat name.
func TestNamesDoNotDependOnOthers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(anyID(), 1, 20, rapid.ID[string]).Draw(t, "ids")
		one := ids[0]
		if slices.ContainsFunc(ids[1:], func(id string) bool { return FlatName(id) == FlatName(one) }) {
			return
		}
		if alone, among := nameTools(Input{Items: items(one)}), nameTools(Input{Items: items(ids...)}); alone[one] != among[one] {
			t.Fatalf("%s is called %s alone, %s among %v", one, alone[one], among[one], ids)
		}
	})
}
