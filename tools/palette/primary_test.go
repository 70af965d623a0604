package palette

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// rye_execute is offered for what has no entry of its own, and says what that is.
func TestExecuteIsForTheRest(t *testing.T) {
	t.Parallel()
	long := definitions("a/long")
	long[0].Description = strings.Repeat("x", bytesPerToken*DefaultMaxTokens)
	unnamed := Item{ID: "a/unnamed", Read: func() (tool.Definition, error) { return tool.Definition{}, &unnamedError{"a b"} }}
	broken := Item{ID: "a/broken", Read: func() (tool.Definition, error) { return tool.Definition{}, errBroken }}
	cases := []struct {
		name      string
		caps      []string
		idle      []string
		tools     []tool.Definition
		items     []Item
		want      string // entries
		says, not string // of its description
		kinds     string
	}{
		{name: "all tools have entries", caps: []string{"rye.execute.tool.*"}, tools: definitions("a/b"), want: "a_b"},
		{
			name: "directive", caps: []string{"rye.execute.directive.x", "rye.execute.tool.*"}, tools: definitions("a/b"),
			want: "rye_execute a_b", says: "Run a directive", not: "a/b", kinds: "directive",
		},
		{name: "knowledge", caps: []string{"rye.execute.knowledge.*"}, want: "rye_execute", says: "Knowledge", not: "directive", kinds: "knowledge"},
		{name: "no room", caps: []string{"rye.execute.tool.a.*"}, tools: long, want: "rye_execute", says: "a/long", not: "directive", kinds: "tool"},
		{name: "no name", caps: []string{"rye.execute.tool.a.*"}, items: []Item{unnamed}, want: "rye_execute", says: "a/unnamed", kinds: "tool"},
		{name: "cannot run", caps: []string{"rye.execute.tool.a.*"}, items: []Item{broken}, want: ""},
		{name: "everything", caps: []string{"*"}, tools: long, want: "rye_execute", says: "a/long", kinds: "directive tool knowledge"},
		{
			name: "an ancestor denies the directive", caps: []string{"rye.execute.directive.x", "rye.execute.tool.*"},
			idle: []string{"rye.execute.directive.x"}, tools: definitions("a/b"), want: "a_b",
		},
		{
			name: "the older form of it under a broad pattern", caps: []string{"rye.execute.*"}, tools: definitions(threadDirectiveID),
			want: "rye_execute", says: "directive", not: threadDirectiveID, kinds: "directive knowledge",
		},
		{
			name: "the older form of it by name", caps: []string{"rye.execute.*", Required(threadDirectiveID)},
			tools: definitions(threadDirectiveID), want: "rye_execute rye_agent_threads_thread_directive", kinds: "directive knowledge",
		},
		{
			name: "the older form of it alone", caps: []string{"rye.execute.tool.rye.*"}, tools: definitions(threadDirectiveID),
			want: "rye_agent_threads_thread_directive",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := Build(Input{
				Primaries: definitions("rye_execute"), Tools: c.tools, Items: c.items, Capabilities: c.caps, Idle: c.idle, Missing: within(0, c.caps...),
			})
			if got := show(p); got != c.want {
				t.Fatalf("got %s, want %s", got, c.want)
			}
			e, callable := p.Get("rye_execute")
			if !callable || e.Kind != KindPrimary {
				t.Fatalf("a call of it is refused: %+v", e)
			}
			if c.kinds == "" {
				return
			}
			var s struct {
				Properties struct {
					Type struct{ Enum []string } `json:"item_type"`
				}
			}
			if err := json.Unmarshal(e.Definition.Schema, &s); err != nil || strings.Join(s.Properties.Type.Enum, " ") != c.kinds {
				t.Errorf("%s of %v, %v", e.Definition.Schema, s, err)
			}
			if d := e.Definition.Description; !strings.Contains(d, c.says) || c.not != "" && strings.Contains(d, c.not) {
				t.Errorf("it says %q", d)
			}
		})
	}
	if _, callable := Build(Input{Primaries: definitions("rye_execute"), Capabilities: []string{"rye.fetch.*"}}).Get("rye_execute"); callable {
		t.Error("a thread that may execute nothing can call it")
	}
}

var errBroken = &tool.Fault{Message: "broken"}

// A palette costs at most 700 tokens beyond the tools that a directive names, however
// much there is that it does not name, and read_artifact 60. The words of a directive
// about its own outputs are its own.
func TestCostBeyondTheTools(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching(`[a-z]{1,12}(/[a-z-]{1,60}){1,4}`)
		var tools []tool.Definition
		for _, id := range rapid.SliceOfNDistinct(id, 0, 40, rapid.ID[string]).Draw(t, "ids") {
			d := definitions(id)[0]
			d.Description = strings.Repeat("x", rapid.IntRange(0, 20_000).Draw(t, "length"))
			tools = append(tools, d)
		}
		caps := rapid.SliceOf(rapid.SampledFrom([]string{
			"*", "rye.*", "rye.execute.*", "rye.execute.tool.*", "rye.execute.directive.a", "rye.fetch.*", "rye.search.tool.*", "rye.sign.*",
		})).Draw(t, "capabilities")
		p := Build(Input{
			Primaries: definitions("rye_execute", "rye_fetch", "rye_search", "rye_sign"), Tools: tools, Capabilities: caps,
			Missing: within(0, caps...), Outputs: []item.Output{{Name: "result", Type: "string", Required: true}},
			ReadArtifact: tool.Definition{ID: "rye/agent/threads/read_artifact", Description: strings.Repeat("x", 1000)},
		})
		beyond, artifact := 0, 0
		for _, e := range p.Entries {
			size := len(`{"type":"function","function":{"name":"","description":"","parameters":}},`) +
				len(e.Name) + len(e.Definition.Description) + len(e.Definition.Schema)
			if e.Kind == KindArtifact {
				artifact = size
			}
			if e.Kind != KindTool {
				beyond += size
			}
		}
		if beyond > 700*bytesPerToken || artifact == 0 || artifact > 60*bytesPerToken {
			t.Fatalf("%d tokens beyond the tools, of which read_artifact %d: %s", beyond/bytesPerToken, artifact/bytesPerToken, show(p))
		}
	})
}

// Keys that a model need not be told are left out of the schema of an item; properties
// that are called like a keyword stay.
func TestPlainly(t *testing.T) {
	t.Parallel()
	const given = `{"$schema":"x","title":"T","type":"object","additionalProperties":false,"properties":{
		"title":{"type":"string","title":"Title","examples":["a"]},
		"list":{"type":"array","items":{"$comment":"c","type":"object","additionalProperties":{"type":"string","title":"v"}}},
		"either":{"anyOf":[{"title":"a","type":"string"},true]},"examples":{"enum":[{"title":"kept"}]}}}`
	const want = `{"properties":{"either":{"anyOf":[{"type":"string"},true]},"examples":{"enum":[{"title":"kept"}]},` +
		`"list":{"items":{"additionalProperties":{"type":"string"},"type":"object"},"type":"array"},"title":{"type":"string"}},"type":"object"}`
	var schema map[string]any
	if err := json.Unmarshal([]byte(given), &schema); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(plainly(schema, 0))
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	if again, _ := json.Marshal(schema); !slices.Contains([]byte(string(again)), 'T') {
		t.Error("the schema of the item was changed")
	}
}

// TestAttackHugeTool: an item has a description and a schema of megabytes, nested a hundred thousand deep. It gets no entry, the others do, and it can be called by its id.
func TestAttackHugeTool(t *testing.T) {
	t.Parallel()
	var deep any = "x"
	for range 100_000 {
		deep = []any{deep}
	}
	huge := Item{ID: "a/huge", Read: func() (tool.Definition, error) {
		return definition("a/huge", &item.ToolDoc{
			Description: strings.Repeat("<", 4<<20), Schema: map[string]any{"type": "object", "properties": map[string]any{}, "allOf": deep},
		})
	}}
	p := Build(Input{
		Primaries: definitions("rye_execute"), Items: append(items("a/small"), huge), Capabilities: []string{"rye.execute.tool.*"}, Missing: allowAll,
	})
	if got := show(p); got != "rye_execute a_small" || !p.Tools[0].NoRoom {
		t.Errorf("%s, %+v", got, p.Tools)
	}
}
