package parse_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

func TestOutline(t *testing.T) {
	t.Parallel()
	src := "# Title\n\n```xml\n<directive name=\"x\">\n  <metadata>\n    <context><system>a &amp; b</system>\n      <system>c</system></context>\n" +
		"  </metadata>\n  <inputs>\n    <input name=\"in\">what</input>\n  </inputs>\n</directive>\n```\nBody\n"
	outline, err := parse.OutlineOf("x.md", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, e := range outline.Elements {
		if strings.Contains(e.Text, "<") {
			e.Text = "…"
		}
		fmt.Fprintf(&got, "%d %s %s %s\n", e.Line, e.Path, e.Name, e.Text)
	}
	want := "4  x …\n5 metadata  …\n6 metadata/context  …\n6 metadata/context/system  a & b\n7 metadata/context/system  c\n9 inputs  …\n10 inputs/input in what\n"
	if got.String() != want || outline.Body != 14 {
		t.Errorf("body on line %d, elements\n%s", outline.Body, got.String())
	}
}

// A directive that can be read has an outline, and one that cannot has the same
// error.
func TestOutlineOfWorkspace(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/workspace/directives/*/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		outline, err := parse.OutlineOf(file, src)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(src), "\n")
		if fence := lines[outline.Body-2]; !strings.HasPrefix(fence, "```") {
			t.Errorf("%s: above the body, on line %d, stands %q", file, outline.Body, fence)
		}
		for _, e := range outline.Elements {
			name := e.Path[strings.LastIndex(e.Path, "/")+1:]
			if !strings.Contains(lines[e.Line-1], "<"+name) {
				t.Errorf("%s: <%s> is not on line %d: %q", file, e.Path, e.Line, lines[e.Line-1])
			}
		}
	}
	var wrong *parse.Error
	if _, err := parse.OutlineOf("x.md", []byte("```xml\n<a></b>\n```\n")); !errors.As(err, &wrong) || wrong.Line != 2 {
		t.Errorf("%v", err)
	}
}
