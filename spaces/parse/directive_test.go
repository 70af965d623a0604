package parse_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

// wrap puts the content of <directive> into a file. Its first line is line 4.
func wrap(content string) string {
	return "# T\n```xml\n<directive name=\"d\">\n" + content + "\n</directive>\n```\nbody\n"
}

// meta puts the content of <metadata> into a file. Its first line is line 5.
func meta(content string) string { return wrap("<metadata>\n" + content + "\n</metadata>") }

func readDirective(t *testing.T, src string) *item.DirectiveDoc {
	t.Helper()
	doc, err := parse.Directive("d.md", []byte(src))
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	return doc
}

// wantError checks that err is a [*parse.Error] on the line with all the words.
func wantError(t *testing.T, err error, line int, words ...string) {
	t.Helper()
	var e *parse.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *parse.Error", err)
	}
	if e.Line != line {
		t.Errorf("%v: line %d, want %d", err, e.Line, line)
	}
	for _, word := range words {
		if !strings.Contains(e.Reason, word) {
			t.Errorf("%v: does not say %q", err, word)
		}
	}
}

func TestDirectiveErrors(t *testing.T) {
	t.Parallel()
	const limits = "turns, tokens, spend, duration_seconds, spawns, depth"
	tests := []struct {
		name, src string
		line      int
		words     []string
	}{
		{"empty file", "", 1, []string{"no ```xml block"}},
		{"no block", "# T\n\ntext\n", 3, []string{"no ```xml block"}},
		{"an indented block", "# T\n\n  ```xml\n  <directive name=\"x\"/>\n  ```\n", 3, []string{"nothing before them"}},
		{"a block of tildes", "~~~xml\n<directive name=\"x\"/>\n~~~\n", 1, []string{"three backticks"}},
		{"only inside a longer fence", "````\n```xml\n<directive name=\"x\"/>\n```\n````\n", 5, []string{"no ```xml block"}},
		{"longer fence never closed", "# T\n````md\n```xml\n<directive name=\"x\"/>\n```\n", 2, []string{"never closed"}},
		{"block never closed", "# T\n```xml\n<directive name=\"x\"/>\n", 2, []string{"never closed"}},
		{"template never closed", wrap("<template>\n<x"), 4, []string{"<template> is never closed"}},
		{"empty block", "```xml\n\n```\n", 2, []string{"empty"}},
		{"other root", "```xml\n<tool name=\"x\"/>\n```\n", 2, []string{"<tool>", "must be <directive>"}},
		{"no name", "```xml\n<directive version=\"1\"/>\n```\n", 2, []string{"attribute name"}},
		{"second root", "```xml\n<directive name=\"a\"/>\n<directive name=\"b\"/>\n```\n", 3, []string{"beside"}},
		{"text before root", "```xml\nhello\n<directive name=\"a\"/>\n```\n", 2, []string{"outside"}},
		{"text after root", "```xml\n<directive name=\"a\"/>\n\nhello\n```\n", 4, []string{"outside"}},
		{"doctype", "```xml\n<!DOCTYPE d>\n<directive name=\"a\"/>\n```\n", 2, []string{"DOCTYPE"}},
		{"other encoding", "```xml\n<?xml version=\"1.0\" encoding=\"latin1\"?>\n<directive name=\"a\"/>\n```\n", 2, []string{"encoding"}},
		{"duplicate attribute", wrap("<metadata>\n<limits turns=\"1\"\n turns=\"2\"/></metadata>"), 5, []string{"turns twice"}},
		{"namespace", wrap("<x:metadata/>"), 4, []string{"namespace"}},
		{"bare ampersand", wrap("<description>a &\nb</description>"), 4, []string{"entity"}},
		{"tags crossed", wrap("<metadata>\n<author></metadata></author>"), 5, []string{"closed by"}},
		{"never ended", "```xml\n<directive name=\"a\">\n<metadata>\n```\n", 4, []string{"EOF"}},
		{"nested too deep", wrap(strings.Repeat("<a>", 70) + strings.Repeat("</a>", 70)), 4, []string{"more than 64 deep"}},
		{"invalid UTF-8", "# T\n\xff\n", 2, []string{"UTF-8"}},
		{"NUL", "# T\n\n\x00", 3, []string{"NUL"}},
		{"element twice", wrap("<metadata/>\n<metadata/>"), 5, []string{"<metadata> already stands on line 4"}},
		{"bad extends", "```xml\n<directive name=\"a\" extends=\"../b\"/>\n```\n", 2, []string{"extends", "not an item id"}},
		{"bad context", meta("<context>\n<system></system></context>"), 6, []string{"<system>", "is empty"}},
		{"bad continuation", meta("<continuation_directive>/a</continuation_directive>"), 5, []string{"absolute"}},
		{"model twice", meta("<model tier=\"a\"/>\n<model_class tier=\"b\"/>"), 6, []string{"keep one"}},

		{"unknown limit", meta("<limits\n turn=\"3\"/>"), 5, []string{`"turn"`, limits}},
		{"limit as element", meta("<limits>\n<turns>3</turns></limits>"), 6, []string{"attributes", limits}},
		{"limit twice", meta("<limits turns=\"3\" max_turns=\"4\"/>"), 5, []string{"turns is given twice"}},
		{"on_limit unknown", meta("<limits on_limit=\"wait\"/>"), 5, []string{`on_limit="wait"`, "stop, ask"}},
		{"limit negative", meta("<limits spend=\"-0.1\"/>"), 5, []string{"0 or more"}},
		{"limit NaN", meta("<limits spend=\"NaN\"/>"), 5, []string{"0 or more"}},
		{"limit infinite", meta("<limits tokens=\"1e400\"/>"), 5, []string{"0 or more"}},
		{"limit no number", meta("<limits depth=\"deep\"/>"), 5, []string{"0 or more"}},
		{"limit not whole", meta("<limits turns=\"2.5\"/>"), 5, []string{"whole number"}},

		{"unknown permission", meta("<permissions>\n<load>*</load></permissions>"), 6,
			[]string{"<load>", "<execute>, <fetch>, <search>, <sign>", "<acknowledge"}},
		{"unknown kind", meta("<permissions><execute>\n<shell>*</shell></execute></permissions>"), 6,
			[]string{"<shell>", "<directive>, <tool>, <knowledge>"}},
		{"text in permissions", meta("<permissions>rye.*</permissions>"), 5, []string{"rye.*", "*"}},
		{"text in execute", meta("<permissions><execute>tool</execute></permissions>"), 5, []string{"<execute>"}},
		{"empty pattern", meta("<permissions><execute><tool/></execute></permissions>"), 5, []string{"pattern"}},
		{"two ids in one", meta("<permissions><execute><tool>a b</tool></execute></permissions>"), 5, []string{"pattern"}},
		{"acknowledge nothing", meta("<permissions><acknowledge>x</acknowledge></permissions>"), 5, []string{"risk"}},

		{"input without name", wrap("<inputs>\n<input/></inputs>"), 5, []string{"attribute name"}},
		{"input name", wrap("<inputs><input name=\"a b\"/></inputs>"), 4, []string{"letters, digits"}},
		{"input twice", wrap("<inputs><input name=\"a\"/>\n<input name=\"a\"/></inputs>"), 5, []string{"already declared on line 4"}},
		{"input type", wrap("<inputs><input name=\"a\" type=\"date\"/></inputs>"), 4, []string{`"date"`, "string, integer"}},
		{"input required", wrap("<inputs><input name=\"a\" required=\"maybe\"/></inputs>"), 4, []string{"true or false"}},
		{"input default", wrap("<inputs>\n\n<input name=\"a\" type=\"integer\" default=\"x\"/></inputs>"), 6, []string{"default", "integer"}},
		{"input default not in enum", wrap("<inputs><input name=\"a\" enum=\"x, y\" default=\"z\"/></inputs>"), 4, []string{"enum", "x, y"}},
		{"enum not of the type", wrap("<inputs><input name=\"a\" type=\"integer\" enum=\"1,b\"/></inputs>"), 4, []string{"enum", "integer"}},
		{"secret that is no string", wrap("<inputs><input name=\"a\" type=\"integer\" secret=\"true\"/></inputs>"), 4, []string{"secret", "type must be string"}},
		{"secret with a default", wrap("<inputs><input name=\"a\" secret=\"true\" default=\"\"/></inputs>"), 4, []string{"secret", "default"}},
		{"secret with an enum", wrap("<inputs><input name=\"a\" secret=\"true\" enum=\"x, y\"/></inputs>"), 4, []string{"secret", "enum"}},
		{"secret or not", wrap("<inputs><input name=\"a\" secret=\"maybe\"/></inputs>"), 4, []string{"true or false"}},
		{"other element in inputs", wrap("<inputs><param name=\"a\"/></inputs>"), 4, []string{"<param>", "<input"}},
		{"output without name", wrap("<outputs><output>x</output></outputs>"), 4, []string{"attribute name"}},
		{"output twice", wrap("<outputs><result/>\n<output name=\"result\"/></outputs>"), 5, []string{"already declared"}},
		{"output type", wrap("<outputs><result type=\"x\"/></outputs>"), 4, []string{"type"}},

		{"hooks hold hooks", meta("<hooks>\n<hok/></hooks>"), 6, []string{"<hok>"}},
		{"hook without event", meta("<hooks><hook><execute item_type=\"tool\">a</execute></hook></hooks>"), 5, []string{"event"}},
		{"hook without action", meta("<hooks><hook event=\"error\"/></hooks>"), 5, []string{"<action>"}},
		{"hook wrap", meta("<hooks><hook event=\"error\" wrap=\"2\"/></hooks>"), 5, []string{"true or false"}},
		{"hook timeout", meta("<hooks><hook event=\"error\" timeout=\"0\"/></hooks>"), 5, []string{"seconds above 0"}},
		{"hook timeout as text", meta("<hooks><hook event=\"error\" timeout=\"1m\"/></hooks>"), 5, []string{"seconds above 0"}},
		{"hook with any", meta("<hooks><hook event=\"error\">\n<any/></hook></hooks>"), 6, []string{"<any>", "<condition>"}},
		{"condition without op", meta("<hooks><hook event=\"error\"><condition path=\"a\"/></hook></hooks>"), 5, []string{"path and op"}},
		{"action does nothing", meta("<hooks><hook event=\"error\"><action/></hook></hooks>"), 5, []string{"item_id"}},
		{"action twice", meta("<hooks><hook event=\"error\"><action primary=\"execute\" item_id=\"a\"><fetch item_id=\"b\"/></action></hook></hooks>"),
			5, []string{"keep one"}},
		{"action with params beside calls", meta("<hooks><hook event=\"error\"><action><param name=\"a\"/><fetch item_id=\"b\"/></action></hook></hooks>"),
			5, []string{"keep one"}},
		{"action without primary", meta("<hooks><hook event=\"error\"><action item_id=\"a\"/></hook></hooks>"), 5, []string{"primary"}},
		{"two conditions as text", meta("<hooks><hook><when>a</when>\n<when>b</when><execute>c</execute></hook></hooks>"), 6, []string{"twice"}},
		{"inputs twice", meta("<hooks><hook><when>a</when><execute>c</execute><inputs/>\n<inputs/></hook></hooks>"), 6, []string{"twice"}},
		{"action unknown", meta("<hooks><hook event=\"error\"><action><run/></action></hook></hooks>"), 5, []string{"<run>"}},
		{"param without name", meta("<hooks><hook event=\"error\"><execute item_id=\"a\"><param/></execute></hook></hooks>"), 5, []string{"name"}},
		{"param twice", meta("<hooks><hook event=\"error\"><execute item_id=\"a\"><param name=\"x\"/>\n<param name=\"x\"/></execute></hook></hooks>"),
			6, []string{"twice"}},
		{"inputs of two actions", meta("<hooks><hook event=\"error\"><fetch item_id=\"a\"/><fetch item_id=\"b\"/>\n<inputs/></hook></hooks>"),
			6, []string{"one action"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc, err := parse.Directive("d.md", []byte(tt.src))
			if doc != nil {
				t.Errorf("got a document beside the error: %+v", doc)
			}
			wantError(t, err, tt.line, tt.words...)
			// The same file saved by Windows has the same lines.
			_, err = parse.Directive("d.md", []byte("\ufeff"+strings.ReplaceAll(tt.src, "\n", "\r\n")))
			wantError(t, err, tt.line, tt.words...)
		})
	}
}

func TestDirectiveTooLarge(t *testing.T) {
	t.Parallel()
	src := wrap("") + strings.Repeat("x", parse.MaxBytes)
	_, err := parse.Directive("d.md", []byte(src))
	wantError(t, err, 1, "4194304")
	if got, want := err.Error(), "d.md:1: the file has"; !strings.HasPrefix(got, want) {
		t.Errorf("message %q does not start with %q", got, want)
	}
}

func TestBlockIsFound(t *testing.T) {
	t.Parallel()
	const block = "```xml\n<directive name=\"real\"/>\n```\n"
	const decoy = "```xml\n<directive name=\"decoy\"/>\n```\n"
	tests := []struct{ name, src, body string }{
		{"alone", block, ""},
		{"behind a closed longer fence", "````md\n" + decoy + "````\n" + block + "go", "go"},
		{"behind a longer fence closed by a longer one", "````\n" + decoy + "`````  \n" + block, ""},
		{"behind tildes", "~~~\n" + decoy + "~~~\n" + block, ""},
		{"behind three backticks never closed", "```sh\nls\n" + block, ""},
		{"upper case and space behind", "``` XML  \n<directive name=\"real\"/>\n```\n", ""},
		{"a second block belongs to the body", block + decoy, strings.TrimSpace(decoy)},
		{"closed by a longer fence", "```xml\n<directive name=\"real\"/>\n`````\nbody", "body"},
		{"no line end at the end", "```xml\n<directive name=\"real\"/>\n```", ""},
		{"xml declaration", "```xml\n<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<directive name=\"real\"/>\n```", ""},
		{"fence in a comment closes", "```xml\n<directive name=\"real\"/>\n<!-- c -->\n```\n<!--\n```\n-->", "<!--\n```\n-->"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc := readDirective(t, tt.src)
			if doc.Name != "real" || doc.Body != tt.body {
				t.Errorf("name %q, body %q, want real and %q", doc.Name, doc.Body, tt.body)
			}
		})
	}
}

func TestOpaqueElements(t *testing.T) {
	t.Parallel()
	doc := readDirective(t, wrap(`<metadata><description>before
<example lang="a>b">x < y && <unclosed> &nope;
`+"```"+`
</example > after</description></metadata>
<!-- <template> is no start here -->
<![CDATA[ <raw> ]]>
<templates/><raw/>
<process>p</process>
<outputs><bad attr="`+"`"+`"/></outputs>`))
	want := "before\n<example lang=\"a>b\">x < y && <unclosed> &nope;\n```\n</example > after"
	if doc.Description != want {
		t.Errorf("description %q, want %q", doc.Description, want)
	}
	if doc.Body != "<process>p</process>\n\nbody" {
		t.Errorf("body %q", doc.Body)
	}
	// Lines behind opaque content still count.
	_, err := parse.Directive("d.md", []byte(wrap("<raw>\n\n<<\n</raw>\n<metadata><limits x=\"1\"/></metadata>")))
	wantError(t, err, 8, "limit")
}

// What of the block is the prompt reads as the body does: its tags as they are written, its
// text decoded, and what is opaque as it stands.
func TestPromptInTheBlock(t *testing.T) {
	t.Parallel()
	doc := readDirective(t, wrap(`<process>
<step name="a &amp; b>">Run `+"`npm test &amp;&amp; npm run build`"+` if a &lt; b; <![CDATA[x && <y>]]></step>
<example>left &amp; right</example><!-- a &amp; b -->
</process>
<outputs>
<success note=">"><criterion>a &gt; b</criterion> &#38; <raw>&lt;</raw></success>
<failure>a &amp; b</failure>
</outputs>`))
	want := "<process>\n<step name=\"a &amp; b>\">Run `npm test && npm run build` if a < b; x && <y></step>\n<example>left &amp; right</example><!-- a &amp; b -->\n</process>\n\nbody"
	if doc.Body != want {
		t.Errorf("body %q, want %q", doc.Body, want)
	}
	if doc.Success != "<criterion>a > b</criterion> & <raw>&lt;</raw>" || doc.Failure != "a & b" {
		t.Errorf("success %q, failure %q", doc.Success, doc.Failure)
	}
}

func TestPreamble(t *testing.T) {
	t.Parallel()
	src := "<!-- rye:signed:x -->\n<!-- a\nlong comment -->\nfirst\n\n```sh\n# not a heading\n```\n## The *title* ##\n\nProse.\n\n" + wrap("")
	doc := readDirective(t, strings.Replace(src, "# T\n", "", 1))
	if doc.Title != "The *title*" {
		t.Errorf("title %q", doc.Title)
	}
	if want := "first\n\n```sh\n# not a heading\n```\n\nProse."; doc.Prose != want {
		t.Errorf("prose %q, want %q", doc.Prose, want)
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		xml  string
		want []string
	}{
		{"<permissions/>", nil},
		{"<permissions> </permissions>", nil},
		{"<permissions>*</permissions>", []string{"rye.*"}},
		{"<permissions><execute/></permissions>", nil},
		{"<permissions><sign>*</sign></permissions>", []string{"rye.sign.*"}},
		{"<permissions><search>*</search></permissions>", []string{"rye.search.*", "rye.fetch.*"}},
		{"<permissions><fetch><tool>a/b/*</tool></fetch></permissions>", []string{"rye.fetch.tool.a.b.*", "rye.search.tool.a.b.*"}},
		{"<permissions><fetch>*</fetch><search>*</search></permissions>", []string{"rye.fetch.*", "rye.search.*"}},
		{"<permissions><execute><tool> rye/file-system/rea? </tool><directive>*</directive></execute></permissions>",
			[]string{"rye.execute.tool.rye.file-system.rea?", "rye.execute.directive.*"}},
	}
	for _, tt := range tests {
		p := readDirective(t, meta(tt.xml)).Permissions
		if !p.Declared || !slices.Equal(p.Capabilities, tt.want) {
			t.Errorf("%s: got %v (declared %t), want %v", tt.xml, p.Capabilities, p.Declared, tt.want)
		}
	}
	if p := readDirective(t, meta("")).Permissions; p.Declared {
		t.Error("permissions are declared though they do not stand in the file")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	got := readDirective(t, meta(`<limits max_turns="3" tokens="4096" max_spend="0.10" duration_seconds="1.5" spawns="0" depth=" 2 "/>`)).Limits
	want := item.LimitSet{"turns": 3, "tokens": 4096, "spend": 0.1, "duration_seconds": 1.5, "spawns": 0, "depth": 2}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOnLimit(t *testing.T) {
	t.Parallel()
	for attrs, want := range map[string]string{`turns="3"`: "", `on_limit="ask" turns="3"`: "ask", `turns="3" on_limit=" stop "`: "stop"} {
		if doc := readDirective(t, meta("<limits "+attrs+"/>")); doc.OnLimit != want || doc.Limits["turns"] != 3 || len(doc.Limits) != 1 {
			t.Errorf("%s: on_limit %q, limits %v", attrs, doc.OnLimit, doc.Limits)
		}
	}
}

func TestInputs(t *testing.T) {
	t.Parallel()
	doc := readDirective(t, wrap(`<inputs>
		<input name="s" default=" x "> a <b>bold</b> word </input>
		<input name="i" type="int" enum="1, 2" default="2"/>
		<input name="n" type="number" default="3"/>
		<input name="b" type="boolean" required="True" default="false"/>
		<input name="l" type="list" default='["a", 1]'/>
		<input name="o" type="object" default='{"a": {"b": null}}'/>
		<input name="e" default=""/>
	</inputs>`))
	want := []item.Input{
		{Name: "s", Type: "string", Default: " x ", Description: "a <b>bold</b> word"},
		{Name: "i", Type: "integer", Default: int64(2), Enum: []string{"1", "2"}},
		{Name: "n", Type: "number", Default: 3.0},
		{Name: "b", Type: "boolean", Required: true, Default: false},
		{Name: "l", Type: "array", Default: []any{"a", int64(1)}},
		{Name: "o", Type: "object", Default: map[string]any{"a": map[string]any{"b": nil}}},
		{Name: "e", Type: "string", Default: ""},
	}
	if !reflect.DeepEqual(doc.Inputs, want) {
		t.Errorf("got\n%#v\nwant\n%#v", doc.Inputs, want)
	}
}

func TestUnknownElementsAreLetPass(t *testing.T) {
	t.Parallel()
	doc := readDirective(t, "```xml\n<directive name=\"d\" other=\"x\"><requires/><metadata><cost><spend>1</spend></cost><team>x</team>"+
		"<description>D</description></metadata><description>E</description><references><a/></references></directive>\n```")
	if doc.Description != "D" {
		t.Errorf("description %q, want the first one", doc.Description)
	}
}
