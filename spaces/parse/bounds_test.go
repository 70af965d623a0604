package parse_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

// allocated is how many bytes a call allocates. Tests that measure it do not run
// beside others.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestAttackMemoryOfParsers: items of a stranger nest, repeat and refer to themselves so that reading them costs far more than their size.
// What a parser allocates stays within two hundred times the size of the file, whatever its format.
func TestAttackMemoryOfParsers(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	const size, factor = 256 << 10, 200
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	data := map[string]string{
		"brackets": "a: " + fill("["), "braces": "a: " + fill("{a: "), "lists": fill("- "), "keys": fill("? "), "anchors": fill("&a "),
		"aliases": "a: &a x\nb: [" + fill("*a,") + "]", "merges": "a: &a {x: 1}\n" + fill("<<: *a\n"), "tags": fill("!!str "), "laughs": manyLaughs(),
	}
	blocks := map[string]string{
		"elements": fill("<a>"), "closed elements": fill("<a></a>"), "attributes": "<a " + fill(`b="" `) + "/>", "permissions": fill("<permissions>"),
		"entities": fill("&lt;"), "raw": fill("<raw>"), "comments": fill("<!-- -->"), "openings": fill("<"), "character data": fill("<![CDATA["),
	}
	files := map[string]string{"fences.md": fill("```xml\n"), "ticks.md": fill("`"), "long fences.md": fill("````\n```xml\n")}
	for name, text := range data {
		files[name+".yaml"] = text
		files[name+".md"] = "```yaml\n" + text + "\n```\n"
	}
	for name, text := range blocks {
		files[name+" in xml.md"] = "```xml\n<directive name=\"x\" version=\"1\">" + text + "</directive>\n```\n"
	}
	for name, text := range map[string]string{"brackets": fill("["), "braces": fill(`{"a":`), "parentheses": fill("("), "strings": fill(`"" `), "templates": "`" + fill("${`")} {
		files[name+".py"] = "CONFIG_SCHEMA = " + text
		files[name+".js"] = "export const CONFIG_SCHEMA = " + text
	}
	for name, text := range files {
		used := allocated(func() {
			_, _ = parse.Directive(name, []byte(text))
			_, _ = parse.Knowledge(name, []byte(text))
			_, _ = parse.Tool(name, []byte(text))
		})
		if most := uint64(factor * max(len(text), 64<<10)); used > most {
			t.Errorf("%s: %d bytes cost %d", name, len(text), used)
		}
	}
}

// manyLaughs are aliases of aliases, ten to each of nine levels.
func manyLaughs() string {
	var text strings.Builder
	text.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&text, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return text.String()
}
