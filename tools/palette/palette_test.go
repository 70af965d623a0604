package palette

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

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

func allowAll(string) *Denial { return nil }

// within allows what the patterns match, and says that an ancestor denies the rest.
func within(ancestor int, caps ...string) func(string) *Denial {
	patterns := bySpecificity(caps)
	return func(required string) *Denial {
		if slices.ContainsFunc(patterns, func(p pattern) bool { return p.matches(required) }) {
			return nil
		}
		return &Denial{Ancestor: ancestor}
	}
}

// omitted lists the tools for which there was no room.
func omitted(p Palette) []string {
	var ids []string
	for _, s := range p.Tools {
		if s.NoRoom {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// items are tool items that can be offered.
func items(ids ...string) []Item {
	list := make([]Item, len(ids))
	for i, d := range definitions(ids...) {
		list[i] = Item{ID: d.ID, Read: func() (tool.Definition, error) { return d, nil }}
	}
	return list
}

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
			"rye_file_system_read rye_file_system_grep rye_bash"},
		{"exact before a longer pattern", []string{"rye.execute.tool.rye.file-system.g*", "rye.execute.tool.rye.bash"}, nil,
			"rye_bash rye_file_system_grep"},
		{"one character", []string{"rye.execute.tool.test.?"}, nil, "test_a"},
		{"search brings fetch", []string{"rye.search.tool.*"}, nil, "rye_fetch rye_search"},
		{"fetch brings search", []string{"rye.fetch.knowledge.x"}, nil, "rye_fetch rye_search"},
		{"sign only", []string{"rye.sign.*"}, outputs, "rye_sign rye_directive_return"},
		{"directives need execute", []string{"rye.execute.directive.x"}, nil, "rye_execute"},
		{"too long to compare", []string{strings.Repeat("*a", 1<<20), "rye.execute.tool.rye.bash"}, nil, "rye_execute rye_fetch rye_search rye_sign rye_bash"},
		{"a dot is a dot", []string{"rye.execute.tool.testxa"}, nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := Build(Input{Primaries: primaries, Tools: tools, Capabilities: c.caps, Missing: within(0, c.caps...), Outputs: c.outputs})
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

func TestMissingDecides(t *testing.T) {
	t.Parallel()
	in := Input{Tools: definitions("a/x", "a/y"), Capabilities: []string{"*"}}
	if got := show(Build(in)); got != "" {
		t.Errorf("without a decision there is %s", got)
	}
	in.Missing = within(2, "rye.execute.tool.a.y")
	p := Build(in)
	if got := show(p); got != "a_y" {
		t.Errorf("got %s", got)
	}
	if x := p.Tools[0]; x.ID != "a/x" || x.Denied == nil || x.Denied.Ancestor != 2 || x.Name != "" {
		t.Errorf("denied: %+v", x)
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	big := definitions("a/big", "b/small", "c/small")
	big[0].Description = strings.Repeat("x", 4*2000) // tokens, as the specification has it
	in := Input{Tools: big, Capabilities: []string{"*"}, Missing: allowAll, Primaries: definitions("rye_execute")}
	in.Primaries[0].Description = strings.Repeat("x", 100_000)
	p := Build(in)
	if got := show(p); got != "rye_execute b_small c_small" || !slices.Equal(omitted(p), []string{"a/big"}) {
		t.Errorf("default: %s, omitted %v", got, omitted(p))
	}
	in.MaxTokens = 10 // 40 bytes: one of the small ones has 7+1+17
	if p := Build(in); show(p) != "rye_execute b_small" || len(omitted(p)) != 2 {
		t.Errorf("ten: %s, omitted %v", show(p), omitted(p))
	}
	in.MaxTokens, in.MaxBroad = 0, 10
	if p := Build(in); show(p) != "rye_execute b_small" || len(omitted(p)) != 2 {
		t.Errorf("named by nobody: %s, omitted %v", show(p), omitted(p))
	}
	named := in
	named.Capabilities = []string{"*", "rye.execute.tool.b.*", "rye.execute.tool.c.small"}
	if p := Build(named); show(p) != "rye_execute c_small b_small" || len(omitted(p)) != 1 {
		t.Errorf("two of them named: %s, omitted %v", show(p), omitted(p))
	}
	in.MaxTokens = -1
	if p := Build(in); show(p) != "rye_execute" || len(omitted(p)) != 3 {
		t.Errorf("none: %s, omitted %v", show(p), omitted(p))
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
