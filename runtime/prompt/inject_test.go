package prompt

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func facts() Facts {
	return Facts{
		Directive: "d/leaf", Body: "Do it.", ProjectPath: "/p", Capabilities: []string{"rye.fetch.*", "rye.sign.*"},
		Inputs: map[string]any{"who": "${project_path} {input:who}", "n": 3},
		Thread: &ThreadFacts{
			Model: "fake/small", ParentID: "a-1", Depth: 1,
			Limits: thread.Limits{Turns: 4, Tokens: 1000, Spend: 100_000, DurationSeconds: 60, Spawns: 2, Depth: 3},
		},
	}
}

// ref is knowledge that a directive asks for.
func ref(position, body string) KnowledgeRef {
	return KnowledgeRef{ID: "k/Notes", Position: position, Directive: "d/leaf", Doc: &item.KnowledgeDoc{Name: "Notes", Body: body}}
}

// Every template is filled in once, in the text of the item alone: what a value
// holds stays as it was typed.
func TestInject(t *testing.T) {
	t.Parallel()
	bare := facts()
	bare.Thread, bare.Capabilities = nil, nil
	for _, c := range []struct {
		facts      Facts
		body, want string
		missing    string
	}{
		{facts: facts(), body: "In ${project_path}, ${model}, ${depth}, ${parent_thread_id}", want: "In /p, fake/small, 1, a-1"},
		{facts: facts(), body: "${spend_limit} USD, ${max_turns} turns, ${limits.depth}", want: "0.1 USD, 4 turns, 3"},
		{facts: facts(), body: "${capabilities_summary}", want: "rye.fetch.*, rye.sign.*"},
		{facts: facts(), body: "${depth}", want: "1"}, // text, although it is one template
		{facts: facts(), body: "${directive}: ${directive_body}", want: "d/leaf: Do it."},
		{facts: facts(), body: "[${inputs.n}] ${inputs.who}", want: "[3] ${project_path} {input:who}"},
		{facts: facts(), body: "{input:who} {env:HOME} ${HOME} ${x:-y} $x", want: "{input:who} {env:HOME} ${HOME} ${x:-y} $x"},
		{facts: facts(), body: "<${no.such}${inputs.gone}${no.such}>", want: "<>", missing: "${no.such}, ${inputs.gone}"},
		{facts: bare, body: "${project_path} ${capabilities_summary}", want: "/p none"},
		{facts: bare, body: "${model}, ${limits.turns}, ${max_turns}", want: "your own, no limit, no limit"},
	} {
		data, err := c.facts.Data()
		if err != nil {
			t.Fatal(err)
		}
		composed := &Composition{Context: []KnowledgeRef{ref(Before, c.body)}}
		blocks, injected, warnings := composed.Inject(data)
		want := "<Notes id=\"k/Notes\" type=\"knowledge\">\n" + c.want + "\n</Notes>"
		if len(blocks.Before) != 1 || blocks.Before[0] != want || len(injected) != 1 || injected[0].Bytes != len(want) {
			t.Errorf("%q: got %+v %+v", c.body, blocks, injected)
		}
		switch told := strings.Join(warnings, "\n"); {
		case c.missing == "" && told != "":
			t.Errorf("%q: warns %q", c.body, told)
		case c.missing != "" && (!strings.HasSuffix(told, c.missing) || !strings.Contains(told, "k/Notes")):
			t.Errorf("%q: warns %q", c.body, told)
		}
	}
}

func TestInjectPositions(t *testing.T) {
	t.Parallel()
	composed := &Composition{Context: []KnowledgeRef{ref(System, "1"), ref(Before, "2"), ref(Before, "3"), ref(After, "4")}}
	context, _, _ := composed.Inject(nil)
	in := Input{
		Directive: &item.DirectiveDoc{Name: "d", Body: "BODY", Success: "All is well."}, Context: context,
		Hooks: Blocks{System: []string{"hook-system"}, Before: []string{"hook-before"}, After: []string{"hook-after"}},
	}
	system, user := Build(in)
	checkOrder(t, system, "\n1\n", "hook-system")
	checkOrder(t, user, "hook-before", "\n2\n", "\n3\n", "BODY", "All is well.", "\n4\n", "hook-after")
	checkOrder(t, Inline(in), "\n1\n", "hook-system", "hook-before", "\n2\n", "\n3\n", "BODY", "All is well.", "\n4\n", "hook-after")
}

// checkOrder checks that each part stands in text once, behind the one before.
func checkOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found || strings.Count(text, part) != 1 {
			t.Errorf("%q is missing, repeated or out of order in\n%s", part, text)
		}
		rest = after
	}
}

// A knowledge entry of any name is in one element with its id.
func TestWrap(t *testing.T) {
	t.Parallel()
	for name, tag := range map[string]string{
		"Identity": "Identity", "base-identity": "base-identity", "v1.2": "v1.2", "2nd": "Knowledge2nd", "": "Knowledge",
		"My notes": "My_notes", `a"><b`: "a___b", "日本": "__",
	} {
		if got, want := Wrap(name, `x"<y`, "\nText\n"), "<"+tag+` id="x&quot;&lt;y" type="knowledge">`+"\nText\n</"+tag+">"; got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// An input stays as it was typed wherever it is put in.
func TestFillOnce(t *testing.T) {
	t.Parallel()
	doc := &item.DirectiveDoc{Body: "{input:a} ${project_path}", Success: "{input:a}", Failure: "{env:P}"}
	filled := Fill(doc, map[string]any{"a": "${project_path} {env:P} {input:b}", "b": "B"}, map[string]string{"P": "{input:b}"})
	if want := "${project_path} {env:P} {input:b}"; filled.Body != want+" ${project_path}" || filled.Success != want || filled.Failure != "{input:b}" {
		t.Errorf("got %+v", filled)
	}
	if doc.Success != "{input:a}" {
		t.Error("the directive itself was changed")
	}
}
