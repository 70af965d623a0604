package palette

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func definitions(ids ...string) []tool.Definition {
	list := make([]tool.Definition, len(ids))
	for i, id := range ids {
		list[i] = tool.Definition{ID: id, Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}
	}
	return list
}

func allowAll(string) bool { return true }

func show(p Palette) string {
	var names []string
	for _, e := range p.Entries {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

func TestBuild(t *testing.T) {
	t.Parallel()
	primaries := definitions("rye_execute", "rye_fetch", "rye_search", "rye_sign")
	tools := definitions("rye/bash", "rye/file-system/grep", "rye/file-system/read", "test/a", ReturnID, "rye/agent/threads/internal/emit")
	outputs := []item.Output{{Name: "x", Type: "string"}}
	cases := []struct {
		name    string
		caps    []string
		outputs []item.Output
		want    string
	}{
		{"nothing held", nil, nil, ""},
		{"everything", []string{"*"}, outputs, "rye_execute rye_fetch rye_search rye_sign rye_directive_return " +
			"rye_bash rye_file_system_grep rye_file_system_read test_a"},
		{"specific before broad", []string{"rye.execute.tool.rye.*", "rye.execute.tool.rye.file-system.*", "rye.execute.tool.rye.file-system.read"}, nil,
			"rye_execute rye_file_system_read rye_file_system_grep rye_bash"},
		{"exact before a longer pattern", []string{"rye.execute.tool.rye.file-system.g*", "rye.execute.tool.rye.bash"}, nil,
			"rye_execute rye_bash rye_file_system_grep"},
		{"one character", []string{"rye.execute.tool.test.?"}, nil, "rye_execute test_a"},
		{"search brings fetch", []string{"rye.search.tool.*"}, nil, "rye_fetch rye_search"},
		{"fetch brings search", []string{"rye.fetch.knowledge.x"}, nil, "rye_fetch rye_search"},
		{"sign only", []string{"rye.sign.*"}, outputs, "rye_sign rye_directive_return"},
		{"directives need execute", []string{"rye.execute.directive.x"}, nil, "rye_execute"},
		{"a dot is a dot", []string{"rye.execute.tool.testxa"}, nil, "rye_execute"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			patterns := bySpecificity(c.caps)
			allow := func(required string) bool {
				return slices.ContainsFunc(patterns, func(p pattern) bool { return p.matches(required) })
			}
			p := Build(Input{Primaries: primaries, Tools: tools, Capabilities: c.caps, Allow: allow, Outputs: c.outputs})
			if got := show(p); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			for _, e := range p.Entries {
				if got, ok := p.Get(e.Name); !ok || got.ID != e.ID {
					t.Errorf("Get(%s) = %v, %v", e.Name, got.ID, ok)
				}
			}
		})
	}
}

func TestAllowDecides(t *testing.T) {
	t.Parallel()
	in := Input{Tools: definitions("a/x", "a/y"), Capabilities: []string{"*"}}
	if got := show(Build(in)); got != "" {
		t.Errorf("without Allow there is %s", got)
	}
	in.Allow = func(required string) bool { return required == "rye.execute.tool.a.y" }
	if got := show(Build(in)); got != "a_y" {
		t.Errorf("got %s", got)
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	big := definitions("a/big", "b/small", "c/small")
	big[0].Description = strings.Repeat("x", 4*DefaultMaxTokens)
	in := Input{Tools: big, Capabilities: []string{"*"}, Allow: allowAll, Primaries: definitions("rye_execute")}
	in.Primaries[0].Description = strings.Repeat("x", 100_000)
	p := Build(in)
	if got := show(p); got != "rye_execute b_small c_small" || !slices.Equal(p.Omitted, []string{"a/big"}) {
		t.Errorf("default: %s, omitted %v", got, p.Omitted)
	}
	in.MaxTokens = 10 // 40 bytes: one of the small ones has 7+1+17
	if p := Build(in); show(p) != "rye_execute b_small" || len(p.Omitted) != 2 {
		t.Errorf("ten: %s, omitted %v", show(p), p.Omitted)
	}
	in.MaxTokens = -1
	if p := Build(in); show(p) != "rye_execute" || len(p.Omitted) != 3 {
		t.Errorf("none: %s, omitted %v", show(p), p.Omitted)
	}
}

func TestReturnSchema(t *testing.T) {
	t.Parallel()
	d := returnDefinition([]item.Output{
		{Name: "count", Type: "integer", Required: true, Description: "how many"},
		{Name: "list", Type: "array"}, {Name: "any"}, {Name: "status", Type: "string", Description: "its own"},
	})
	cases := map[string]string{
		`{"count":1,"list":["a",2],"any":{"x":1},"status":"own words"}`: "",
		`{"error_detail":"no input"}`:                                   "",
		`{"count":"1"}`:                                                 `"count" must be integer`,
		`{"coutn":1}`:                                                   `did you mean "count"`,
	}
	for args, want := range cases {
		err := tool.Validate(d.Schema, json.RawMessage(args))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
	plain := returnDefinition([]item.Output{{Name: "x", Type: "string"}})
	for _, status := range []string{"success", "completed", "error"} {
		if err := tool.Validate(plain.Schema, json.RawMessage(`{"status":"`+status+`"}`)); err != nil {
			t.Error(err)
		}
	}
	if err := tool.Validate(plain.Schema, json.RawMessage(`{"status":"done"}`)); err == nil {
		t.Error("any status is accepted")
	}
}

func TestFlatName(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"rye/file-system/read": "rye_file_system_read",
		"a.b c/ä":              "a_b_c__",
	} {
		if got := FlatName(id); got != want {
			t.Errorf("FlatName(%q) = %q, want %q", id, got, want)
		}
	}
	long := strings.Repeat("x", 100)
	if a, b := FlatName(long+"/a"), FlatName(long+"/b"); len(a) != maxName || a == b {
		t.Errorf("%s and %s", a, b)
	}
}

// Whatever the ids, names are unique and fit every provider.
func TestNamesAreUniqueAndValid(t *testing.T) {
	t.Parallel()
	valid := regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)
	id := rapid.StringMatching(`[ab]([/_.-][ab]){0,3}|a{60,70}|rye[/_]execute`)
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(id, 0, 30, rapid.ID[string]).Draw(t, "ids")
		p := Build(Input{
			Primaries: definitions("rye_execute"), Tools: definitions(ids...), Capabilities: []string{"*"},
			Allow: allowAll, MaxTokens: 1 << 20,
		})
		seen := map[string]bool{}
		for _, e := range p.Entries {
			if !valid.MatchString(e.Name) || seen[e.Name] {
				t.Fatalf("name %q of %s", e.Name, e.ID)
			}
			seen[e.Name] = true
		}
		if len(p.Entries) != len(ids)+1 || p.Entries[0].Name != "rye_execute" {
			t.Fatalf("%d entries for %d tools, first %s", len(p.Entries), len(ids), p.Entries[0].Name)
		}
	})
}

func TestCapabilityTree(t *testing.T) {
	t.Parallel()
	got := CapabilityTree([]string{"rye.search.*", "rye.execute.tool.rye.bash", "rye.execute.tool.rye.*", "rye.search.*"})
	want := "- `rye`\n  - `execute`\n    - `tool`\n      - `rye`\n        - `*`\n        - `bash`\n  - `search`\n    - `*`\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := CapabilityTree(nil); !strings.Contains(got, "denied") {
		t.Errorf("none: %s", got)
	}
}
