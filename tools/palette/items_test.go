package palette

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

var update = flag.Bool("update", false, "rewrite golden files")

// spaces are those of a project with these tools.
func spaces(t *testing.T, files map[string]string) Spaces {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, ".ai", "tools", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	system := fstest.MapFS{}
	for _, d := range definitions("rye/bash", "rye/file-system/read", "rye/file-system/write") {
		system["tools/"+d.ID+".yaml"] = &fstest.MapFile{Data: []byte("executor_id: rye/core/builtin\n")}
	}
	return Spaces{
		Resolver: resolve.New(resolve.Roots{Project: dir, System: system}),
		Builtin:  definitions("rye/bash", "rye/file-system/read", "rye/file-system/write"),
	}
}

// read reads the item with that id.
func read(t *testing.T, s Spaces, id string) (tool.Definition, error) {
	t.Helper()
	list, err := s.Items()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if i.ID == id {
			return i.Read()
		}
	}
	t.Fatalf("%s is not listed among %d items", id, len(list))
	return tool.Definition{}, nil
}

func TestItems(t *testing.T) {
	t.Parallel()
	const runnable = "executor_id: x/run\n"
	files := map[string]string{
		"a/good.py":                 "\"\"\"Does it.\"\"\"\n__executor_id__ = 'x/run'\nCONFIG_SCHEMA = {'properties': {'a': {'type': 'string'}}, 'anyOf': [{'required': ['a']}]}",
		"a/unknown.py":              "\"\"\"Does it.\"\"\"\n__executor_id__ = 'x/run'\nCONFIG_SCHEMA = f()",
		"a/none.py":                 "run()",
		"a/bare.yaml":               "description: Does it.\n",
		"a/other.yaml":              "executor_id: x/other\n",
		"a/claims.yaml":             "executor_id: rye/core/builtin\n",
		"a/broken.yaml":             "- a",
		"a/list.yaml":               runnable + "config_schema: {type: array}\n",
		"a/wrong.yaml":              runnable + "config_schema: {type: object, properties: {a: {type: strin}}}\n",
		"a/name.yaml":               runnable + "config_schema: {type: object, properties: {'a b': {type: string}}}\n",
		"rye/bash.py":               "__executor_id__ = 'x/other'",
		"rye/bash.yaml":             "executor_id: rye/core/builtin\n",
		"a/good.yaml":               "executor_id: x/other\n",
		"rye/file-system/read.yaml": "executor_id: rye/core/builtin\ndescription: mine\n",
	}
	s := spaces(t, files)
	s.Check = func(found *resolve.Found) error {
		if doc, err := found.Tool(); err != nil || doc.ExecutorID != "x/run" {
			return errors.Join(err, errors.New("nothing runs it"))
		}
		return nil
	}
	for id, problem := range map[string]string{
		"a/good": "", "a/unknown": "", "rye/file-system/read": "",
		"a/none":   "nothing runs it",
		"a/bare":   "nothing runs it",
		"a/other":  "nothing runs it",
		"a/claims": "it says it is built in, but this version has no such tool",
		"a/broken": "line 1 of it cannot be read: ",
		"a/list":   "its schema is not that of an object",
		"a/wrong":  "its schema is no JSON Schema",
		"a/name":   `its parameter "a b" has a name that not every provider takes`,
		"rye/bash": "nothing runs it",
	} {
		_, err := read(t, s, id)
		if (err == nil) != (problem == "") || err != nil && !strings.HasPrefix(err.Error(), problem) {
			t.Errorf("%s: got %v, want %q", id, err, problem)
		}
	}
	d, _ := read(t, s, "a/good")
	if want := `{"properties":{"a":{"type":"string"}},"type":"object"}`; string(d.Schema) != want || d.Description != "Does it." {
		t.Errorf("a/good: %q, %s", d.Description, d.Schema)
	}
	d, _ = read(t, s, "a/unknown")
	if !strings.Contains(d.Description, "not declared") || string(d.Schema) != `{"properties":{},"type":"object"}` {
		t.Errorf("a/unknown: %q, %s", d.Description, d.Schema)
	}
	if d, _ = read(t, s, "rye/file-system/read"); d.Description != "d" {
		t.Errorf("a built-in tool is described by an item: %q", d.Description)
	}
	list, err := s.Items()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if i.ID == "rye/file-system/write" {
			t.Error("the built-in tools of the system space are listed")
		}
	}
}

// An item that hides a built-in tool takes its place, also where it cannot run.
func TestHiddenBuiltin(t *testing.T) {
	t.Parallel()
	s := spaces(t, map[string]string{"rye/bash.sh": "# Mine.\nls"})
	list, err := s.Items()
	if err != nil {
		t.Fatal(err)
	}
	p := Build(Input{Tools: s.Builtin, Items: list, Capabilities: []string{"rye.execute.tool.rye.bash"}, Missing: allowAll})
	for _, st := range p.Tools {
		if st.ID == "rye/bash" && st.Problem == "" {
			t.Errorf("%+v", st)
		}
	}
	if _, offered := p.Get("rye_bash"); offered {
		t.Error("the hidden tool is offered")
	}
}

// Denied items are not even read.
func TestDeniedItemsAreNotRead(t *testing.T) {
	t.Parallel()
	denied := Item{ID: "a/x", Read: func() (tool.Definition, error) { t.Error("read"); return tool.Definition{}, nil }}
	Build(Input{Items: []Item{denied}, Capabilities: []string{"*"}, Missing: within(1)})
	Build(Input{Items: []Item{denied}, Capabilities: []string{"rye.execute.tool.b"}, Missing: within(0)})
}

func TestTree(t *testing.T) {
	t.Parallel()
	s := spaces(t, map[string]string{
		"team/deploy.py": "__executor_id__ = 'x/python'", "team/count.sh": "wc", "team/broken.yaml": "- a",
	})
	list, err := s.Items()
	if err != nil {
		t.Fatal(err)
	}
	builtin := slices.Clone(s.Builtin)
	builtin[2].Description = strings.Repeat("x", 4*DefaultMaxTokens)
	parent := []string{"rye.execute.tool.rye.*", "rye.execute.tool.team.count", "rye.execute.tool.team.broken", "rye.search.*"}
	own := []string{
		"rye.execute.tool.*", "rye.execute.tool.rye.file-system.*", "rye.execute.tool.team.deploy", "rye.execute.directive.team.*",
		"rye.search.knowledge.*", "rye.sign.*", "*.knowledge.*", "rye.execute.tool.*",
	}
	p := Build(Input{
		Primaries: definitions("rye_execute", "rye_fetch", "rye_search", "rye_sign"), Tools: builtin, Items: list,
		Capabilities: own, Missing: within(1, parent...), Outputs: []item.Output{{Name: "x"}},
	})
	got := p.Tree(Held{Own: own, Ancestors: [][]string{parent, {"*"}, nil}, Idle: []string{"rye.sign.*"}})
	golden := filepath.Join("testdata", "tree.md")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := (Palette{}).Tree(Held{}); !strings.Contains(got, "denied") {
		t.Errorf("nothing held: %s", got)
	}
}

func TestDefinitionKeepsTheDocument(t *testing.T) {
	t.Parallel()
	schema := map[string]any{"oneOf": []any{}, "properties": map[string]any{}}
	if _, err := definition("a", &item.ToolDoc{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	if raw, _ := json.Marshal(schema); string(raw) != `{"oneOf":[],"properties":{}}` {
		t.Errorf("the document was changed: %s", raw)
	}
}

// A tool whose parameters are not declared names what reads about them to a model that has
// it.
func TestUndeclaredParameters(t *testing.T) {
	t.Parallel()
	read := func() (tool.Definition, error) { return definition("a/t", &item.ToolDoc{Description: "Does it."}) }
	for _, c := range []struct{ more, want string }{
		{"rye.execute.tool.b", "Does it.\nIts parameters are not declared."},
		{"rye.fetch.tool.*", "Does it.\nIts parameters are not declared; read about them with rye_fetch."},
	} {
		p := Build(Input{
			Primaries: []tool.Definition{{ID: "rye_fetch"}}, Items: []Item{{ID: "a/t", Read: read}},
			Capabilities: []string{"rye.execute.tool.a.t", c.more}, Missing: func(string) *Denial { return nil },
		})
		if e, ok := p.Get("a_t"); !ok || e.Definition.Description != c.want {
			t.Errorf("%s: %+v", c.more, e.Definition)
		}
	}
}
