package prompt

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, want string }{
		"steps": {
			"<process>\n  <step name=\"schema\">\n    <description>Write the schema.</description>\n    <action><![CDATA[x]]></action>\n  </step>\n</process>\n\nBe brief.",
			"db\nMakes tables\nschema\nWrite the schema.\n<![CDATA[x]]>\nBe brief.",
		},
		"words of attributes": {`<step name='a' description="b c" n="1"/>`, "db\nMakes tables\na: b c"},
		"no markup":           {"if a < b, c > d; 1 <2", "db\nMakes tables\nif a < b, c > d; 1 <2"},
		"comments":            {"a <!-- <b> --> c", "db\nMakes tables\na\nc"},
		"never closed":        {"a <step name=\"x", "db\nMakes tables\na <step name=\"x"},
		"ends in a sign":      {"a <", "db\nMakes tables\na <"},
		"an open quote":       {`<a name="x>b`, "db\nMakes tables\nb"},
		"empty":               {"", "db\nMakes tables"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Clean(&item.DirectiveDoc{Name: "db", Description: "Makes tables", Body: tt.body}); got != tt.want {
				t.Errorf("clean: %q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzClean: no text is too strange, and what is clean has no empty lines.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{"<a name=\"b\">c</a>", "<!--", "< <a", "</", "<a name='"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got := Clean(&item.DirectiveDoc{Name: "n", Body: body})
		if strings.Contains(got, "\n\n") || !strings.HasPrefix(got, "n") {
			t.Errorf("clean: %q", got)
		}
	})
}
