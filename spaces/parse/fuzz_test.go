package parse_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

// seed adds the files below testdata/workspace/<dir> and extra texts.
func seed(f *testing.F, dir string, extra ...string) {
	files, err := filepath.Glob("testdata/workspace/" + dir + "/*/*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds in %s: %v", dir, err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	for _, text := range extra {
		f.Add([]byte(text))
	}
}

// checkParsed checks what holds for every reader: a document or an [*Error] on
// a line of the file, and a document that JSON can hold.
func checkParsed(t *testing.T, src []byte, doc any, err error) {
	t.Helper()
	if err != nil {
		var e *parse.Error
		if !errors.As(err, &e) {
			t.Fatalf("%v is not a *parse.Error", err)
		}
		// A final line end opens an empty line that an error may name.
		if last := bytes.Count(src, []byte("\n")) + 1; e.Line < 1 || e.Line > last {
			t.Fatalf("%v: the file has %d lines", err, last)
		}
		return
	}
	if _, err := json.Marshal(doc); err != nil {
		t.Fatalf("the document cannot be written as JSON: %v", err)
	}
}

func FuzzDirective(f *testing.F) {
	seed(f, "directives", wrap("<inputs><input name=\"a\" default=\"x\"/></inputs>"), meta("<limits turns=\"1\"/>"),
		meta("<permissions><fetch>*</fetch></permissions>"), "````\n```xml\n", wrap("<raw>\n```\n</raw>"))
	f.Fuzz(func(t *testing.T, src []byte) {
		doc, err := parse.Directive("d.md", src)
		checkParsed(t, src, doc, err)
		if err != nil {
			return
		}
		if doc.Name == "" {
			t.Error("a directive without a name was read")
		}
		for _, c := range doc.Permissions.Capabilities {
			if !strings.HasPrefix(c, "rye.") || strings.ContainsAny(c, "/ \n") {
				t.Errorf("capability %q", c)
			}
		}
		for name, value := range doc.Limits {
			if value < 0 || value != value {
				t.Errorf("limit %s is %v", name, value)
			}
		}
		for _, id := range doc.Context.System {
			if err := item.CheckID(id); err != nil {
				t.Error(err)
			}
		}
	})
}

func FuzzKnowledge(f *testing.F) {
	seed(f, "knowledge", "---\na: &a [1]\nb: *a\n<<: {c: d}\n---\nx", "```yaml\nt: 2026-01-01\n```", "---\na: !!binary x\nb: .nan\n---")
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, path := range []string{"k.md", "k.yaml"} {
			doc, err := parse.Knowledge(path, src)
			checkParsed(t, src, doc, err)
			if err == nil && doc.Name == "" {
				t.Error("an entry without a name was read")
			}
		}
	})
}

func FuzzTool(f *testing.F) {
	seed(f, "knowledge", "parameters:\n- {name: a, type: int, required: true}\n", "parameters: {a: {type: str}}", "#!/bin/sh\n# x\n",
		"\"\"\"doc\"\"\"", "/** a\n * @b */", "CONFIG_SCHEMA = {'a': [1, *B]}\n__version__ = 1.5", "#!/x\nconst CONFIG_SCHEMA = {a: [...b]} as const",
		"/**\n * @version 1\n * @param {string[]} [a=[\"x\"]] - A\n */", "config_schema: {type: object}")
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, ext := range item.Tool.Extensions() {
			doc, err := parse.Tool("t"+ext, src)
			checkParsed(t, src, doc, err)
		}
	})
}

func FuzzStripSignature(f *testing.F) {
	seed(f, "directives", "#!/bin/sh\n# rye:signed:x\nls", "# rye:unsigned", "\ufeff// rye:signed:x\n")
	f.Fuzz(func(t *testing.T, src []byte) {
		got := parse.StripSignature(src)
		if again := parse.StripSignature(got); !bytes.Equal(again, got) && !bytes.HasPrefix(got, []byte("#!")) {
			t.Errorf("a signature was left in %q", got)
		}
		if len(got) > len(src) || !bytes.HasSuffix(src, lastLine(got)) {
			t.Errorf("%q became %q", src, got)
		}
		// A file that is signed anew strips back to the same content.
		if !bytes.HasPrefix(bytes.TrimPrefix(got, []byte("\ufeff")), []byte("#!")) && reflect.DeepEqual(parse.StripSignature(got), got) {
			if back := parse.StripSignature(append([]byte("# rye:signed:x\n"), got...)); !bytes.Equal(back, got) {
				t.Errorf("signing and stripping made %q of %q", back, got)
			}
		}
	})
}

func lastLine(src []byte) []byte { return src[bytes.LastIndexByte(src, '\n')+1:] }
