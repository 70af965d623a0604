package parse_test

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/alloctest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

// TestAttackMemoryOfParsers: items of a stranger nest, repeat and refer to themselves so that reading them costs far more than their size.
// The memory that a parser takes stays within two hundred times the size of the file, whatever its format.
func TestAttackMemoryOfParsers(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	longtest.Mark(t)
	const factor = 200
	size := alloctest.Size(parse.MaxBytes) - 1<<10
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	blocks := map[string]string{
		"elements": fill("<a>"), "closed elements": fill("<a></a>"), "attributes": "<a " + fill(`b="" `) + "/>", "permissions": fill("<permissions>"),
		"entities": fill("&lt;"), "raw": fill("<raw>"), "comments": fill("<!-- -->"), "openings": fill("<"), "character data": fill("<![CDATA["),
	}
	files := map[string]string{"fences.md": fill("```xml\n"), "ticks.md": fill("`"), "long fences.md": fill("````\n```xml\n")}
	for name, text := range alloctest.YAML(size) {
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
	alloctest.Linear(t, factor, files, func(name string, src []byte) { _, _ = parse.Directive(name, src) })
	alloctest.Linear(t, factor, files, func(name string, src []byte) { _, _ = parse.Knowledge(name, src) })
	alloctest.Linear(t, factor, files, func(name string, src []byte) { _, _ = parse.Tool(name, src) })
}
