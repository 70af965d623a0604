package constant_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/constant"
)

// checkTable checks that what is read of any text is small, can be written as
// JSON, and stands on a line of the text.
func checkTable(t *testing.T, src string, table map[string]constant.Constant) {
	t.Helper()
	lines := 1 + strings.Count(src, "\n")
	for name, c := range table {
		if c.Line < 1 || c.Line > lines {
			t.Errorf("%q on line %d of %d", name, c.Line, lines)
		}
		if c.Reason != "" {
			if c.Value != nil || strings.Contains(c.Reason, "\n") {
				t.Errorf("%q: value %v with reason %q", name, c.Value, c.Reason)
			}
			continue
		}
		raw, err := json.Marshal(c.Value)
		if err != nil || len(raw) > 64<<20 {
			t.Errorf("%q: %d bytes, %v", name, len(raw), err)
		}
	}
}

// some are the first names of a text, of which a caller may ask.
func some(src string) []string { return words.FindAllString(src, 20) }

func FuzzPython(f *testing.F) {
	seed(f, "traps.py", "A = '''\\", "A: x = {**", "A = B = (1,; *", "if a: A = 1", "\fA = 1\r\rB = 2", "A = 0x", "A = 'x' \\\n\\", "\"\\", "A=rb''", "A=1)+(1")
	f.Fuzz(func(t *testing.T, src string) { checkTable(t, src, constant.Python(src, some(src)...)) })
}

func FuzzJavaScript(f *testing.F) {
	seed(f, "traps.ts", "const A = `${`${", "let A = /[", "A /= /x/", "export", "const A = <<", "exports.", "module.exports = {", "const A = \"\\u{", "}}}`", "\x81A0#", "const a\\u0041 = '\\x4'", "const A=\xd1",
		"const A = {get x() {}}", "const A = \"\\ud83d\\udzzz\"")
	f.Fuzz(func(t *testing.T, src string) { checkTable(t, src, constant.JavaScript(src, some(src)...)) })
}

func seed(f *testing.F, file string, more ...string) {
	f.Helper()
	src, err := os.ReadFile("testdata/" + file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(src))
	for _, text := range more {
		f.Add(text)
	}
}
