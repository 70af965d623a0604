package parse_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

// TestUnknownNames reads directives with names that the format does not know: they
// load, and the names are told.
func TestUnknownNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ metadata, root, part, says, nearest string }{
		{metadata: `<permissoins><execute>*</execute></permissoins>`, part: "permissions", says: "<permissoins> is not known in <metadata>", nearest: "<permissions>"},
		{metadata: `<Permissions>*</Permissions>`, part: "permissions", nearest: "<permissions>"},
		{metadata: `<capabilities>*</capabilities>`, part: "permissions", nearest: "<permissions>"},
		{root: `<permissions>*</permissions>`, part: "permissions", says: "<permissions> belongs in <metadata>; in <directive> nobody reads it"},
		{metadata: `<security><permissions>*</permissions></security>`, part: "permissions", says: "nobody reads the <permissions> in it"},
		{metadata: `<permissions inherit="no"></permissions>`, part: "permissions", says: `has no attribute "inherit"`},
		{metadata: `<permissions><execute><tool only="true">a</tool></execute></permissions>`, part: "permissions", says: `<tool> has no attribute "only"`},
		{metadata: `<limit turns="3"/>`, part: "limits", nearest: "<limits>"},
		{metadata: `<limits>turns=3</limits>`, part: "limits", says: `holds a text; what counts are its attributes`},
		{root: `<limits turns="3"/>`, part: "limits", says: "belongs in <metadata>"},
		{metadata: `<model teir="fast"/>`, part: "model", says: `<model> has no attribute "teir"`, nearest: "tier"},
		{metadata: `<moedl tier="fast"/>`, part: "model", nearest: "<model>"},
		{metadata: `<model>claude-x</model>`, part: "model", says: "what counts are its attributes provider, tier, id, fallback"},
		{root: `<inputs><input name="a" requird="true"/></inputs>`, part: "inputs", says: `<input name="a"> has no attribute "requird"`, nearest: "required"},
		{root: `<inptus><input name="a"/></inptus>`, part: "inputs", nearest: "<inputs>"},
		{root: `<input name="a"/>`, part: "inputs", nearest: "<inputs>"},
		{metadata: `<inputs><input name="a"/></inputs>`, part: "inputs", says: "belongs in <directive>"},
		{root: `<inputs><input name="a" type="str"/></inputs>`, says: `the type "str" is not of the format; it is read as string`},
		{root: `<outputs><outptu name="a"/></outputs>`, part: "outputs", nearest: "<output>"},
		{root: `<outputs><output name="a" require="true"/></outputs>`, part: "outputs", nearest: "required"},
		{root: `<outputs><succes>done</succes></outputs>`, says: "is read as an output of that name", nearest: "<success>"},
		{root: `<success>done</success>`, says: "<success> belongs in <outputs>; in <directive> nobody reads it"},
		{root: `<failure>why</failure>`, says: "<failure> belongs in <outputs>"},
		{root: `<extends>base</extends>`, part: "extends", nearest: "extends"},
		{root: `<continuation_directive>next</continuation_directive>`, says: "<continuation_directive> belongs in <metadata>"},
		{metadata: `<continuation>next</continuation>`, says: "<continuation> is not known in <metadata>"},
		{metadata: `<hooks><hook id="h" event="after_step" positioon="after"><execute item_type="tool">a</execute></hook></hooks>`, nearest: "position"},
		{metadata: `<hooks><hook id="h" event="error"><condition path="a" op="eq" vaule="1"/><execute item_type="tool">a</execute></hook></hooks>`, nearest: "value"},
		{metadata: `<context><befor>k</befor></context>`, nearest: "<before>"},
		{metadata: `<parent>base</parent>`, says: "<parent> is not known in <metadata>"},
	} {
		src := fmt.Sprintf("```xml\n<directive name=\"d\" version=\"1\">\n<metadata>\n%s</metadata>\n%s</directive>\n```\n", test.metadata, test.root)
		doc, err := parse.Directive("d.md", []byte(src))
		if err != nil {
			t.Errorf("%s%s: %v", test.metadata, test.root, err)
			continue
		}
		if len(doc.Unknown) != 1 {
			t.Errorf("%s%s: %d names: %v", test.metadata, test.root, len(doc.Unknown), doc.Unknown)
			continue
		}
		got := doc.Unknown[0]
		wantLine := 4
		if test.root != "" {
			wantLine = 5
		}
		if got.Part != item.Part(test.part) || !strings.Contains(got.Text, test.says) || !strings.Contains(got.Nearest, test.nearest) || got.Line != wantLine {
			t.Errorf("%s%s: line %d, part %q: %s", test.metadata, test.root, got.Line, got.Part, got)
		}
	}
}

// TestKnownNames reads a directive with every name of the format, and what authors
// of other versions add, which is prose.
func TestKnownNames(t *testing.T) {
	t.Parallel()
	const src = "```xml\n" + `<directive name="all" version="1" extends="base">
<metadata><description>d</description><category>c</category><author>a</author>
<model provider="p" tier="t" id="i" fallback="f">why this one</model>
<limits turns="1" max_tokens="2" spend="1" duration_seconds="3" spawns="1" depth="1" on_limit="ask"/>
<permissions><execute><tool>a</tool><directive>b</directive></execute><search>*</search><acknowledge risk="r">why</acknowledge></permissions>
<hooks><hook id="h" event="error" position="after" wrap="false" timeout="3"><description>d</description><condition path="a" op="eq" value="1"/>
<action primary="execute" item_type="tool" item_id="x"><param name="p">v</param></action></hook>
<hook><when>event.name == "error"</when><execute item_type="tool">x</execute><inputs><a>1</a></inputs></hook></hooks>
<context><system>s</system><before>b</before><after>a</after><suppress>p</suppress><related_files>- a.go</related_files></context>
<continuation_directive>next</continuation_directive>
<cost><context estimated_usage="high">1</context><spend currency="USD">3</spend></cost></metadata>
<inputs><input name="a" type="integer" required="true" default="1" enum="1,2">x</input><input name="s" secret="true"/></inputs>
<outputs><output name="o" type="string" required="true">x</output><other>an output, too</other><success>s</success><failure>f</failure></outputs>
<process><step name="a"><limits><permissions>*</permissions></limits></step></process>
<success_criteria><criterion>c</criterion></success_criteria>
</directive>` + "\n```\n"
	doc, err := parse.Directive("all.md", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Unknown) > 0 {
		t.Errorf("not known: %v", doc.Unknown)
	}
	if names := doc.UnknownNames("team/all"); len(names) > 0 {
		t.Errorf("the name is that of the file: %v", names)
	}
	if names := doc.UnknownNames("team/every"); len(names) != 1 || names[0].Line != 2 || names[0].Part != "" {
		t.Errorf("the name is not that of the file: %v", names)
	}
}

// TestFrontMatter tells what a Markdown file with front matter is, and what a directive
// needs.
func TestFrontMatter(t *testing.T) {
	t.Parallel()
	_, err := parse.Directive("agent.md", []byte("---\nname: reviewer\ntools: Read\n---\n\nReview it.\n"))
	for _, part := range []string{"agent.md:2: front matter is not read here", "```xml block with a <directive>", ".claude/agents"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q", err, part)
		}
	}
	const front = "<!-- rye:signed:x -->\n---\nname: reviewer\ntools: Read, Bash\n  model: no key\nmodel: opus\n---\n"
	for block, want := range map[string]string{
		"": "4: front matter is not read: its key tools has no effect; did you mean <permissions>?\n6: front matter is not read: its key model has no effect; did you mean <model>?\n",
		`<permissions><execute><tool>rye.bash</tool></execute></permissions><model tier="fast" />`: "",
	} {
		doc, err := parse.Directive("d.md", []byte(front+meta(block)))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, name := range doc.Unknown {
			got += fmt.Sprintf("%d: %s\n", name.Line, name)
		}
		if got != want {
			t.Errorf("%s: got %swant %s", block, got, want)
		}
	}
	doc, err := parse.Directive("d.md", []byte("---\n\ntools: of the trade\n"+meta("")))
	if err != nil || len(doc.Unknown) > 0 { // a line of Markdown
		t.Errorf("%v, %v", doc, err)
	}
}
