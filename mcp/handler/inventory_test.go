package handler

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
)

var update = flag.Bool("update", false, "write the golden files of the tools")

// list returns the tools as a client sees them.
func list(t *testing.T, groups []Group) []servertest.Tool {
	t.Helper()
	s := server.New(server.Options{Version: "test"})
	Register(s, oneProject{}, groups, operation.All())
	return servertest.Start(t, s).Tools()
}

// What a client is told about each tool changes only on purpose.
func TestGolden(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, tool := range list(t, Groups()) {
		path := filepath.Join("testdata", tool.Name+".json")
		known[path] = true
		var got bytes.Buffer
		enc := json.NewEncoder(&got)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(tool); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s differs from what %s says; with -update it is written anew:\n%s", tool.Name, path, got.Bytes())
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if !known[path] {
			t.Errorf("%s is of no tool", path)
		}
	}
}

// The schemas that are part of the program are those of the types.
func TestSchemas(t *testing.T) {
	t.Parallel()
	plain := server.New(server.Options{Version: "test"})
	Register(plain, oneProject{}, Groups(), operation.All())
	derived := plain.Schemas()
	want, err := json.Marshal(derived)
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("schemas.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(schemasFile, want) {
		t.Error("schemas.json differs from the types; with -update it is written anew")
	}
	s := server.New(server.Options{Version: "test", Schemas: Schemas()})
	Register(s, oneProject{}, Groups(), operation.All())
	for _, tool := range servertest.Start(t, s).Tools() {
		got, want := server.Schemas{Input: tool.InputSchema, Output: tool.OutputSchema}, derived[tool.Name]
		open := bytes.ReplaceAll(want.Input, []byte(`,"additionalProperties":false`), nil)
		if !bytes.Equal(got.Input, open) || bytes.Equal(open, want.Input) || !bytes.Equal(got.Output, want.Output) {
			t.Errorf("%s: a client is told other schemas than those of the types", tool.Name)
		}
	}
}

// The rules that hold for every tool.
func TestInventory(t *testing.T) {
	t.Parallel()
	portable := regexp.MustCompile(`^[A-Za-z0-9_]{1,46}$`)
	for _, tool := range list(t, Groups()) {
		if !portable.MatchString(tool.Name) {
			t.Errorf("%s: not a name that every client leaves as it is", tool.Name)
		}
		if tool.Title == "" || len(tool.Description) < 80 || len(tool.Description) > 2048 {
			t.Errorf("%s: title %q, description of %d bytes", tool.Name, tool.Title, len(tool.Description))
		}
		var hints map[string]any
		if err := json.Unmarshal(tool.Annotations, &hints); err != nil {
			t.Fatal(err)
		}
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if _, ok := hints[hint].(bool); !ok {
				t.Errorf("%s: says nothing about %s", tool.Name, hint)
			}
		}
		var input, output struct {
			Type       string
			Properties map[string]struct{ Type, Description string }
			Required   []string
			Additional *bool `json:"additionalProperties"`
		}
		if err := json.Unmarshal(tool.InputSchema, &input); err != nil {
			t.Fatal(err)
		}
		if input.Type != "object" || input.Additional != nil || input.Properties["project_path"].Type != "string" {
			t.Errorf("%s: the input is told to be closed, or takes no project_path: %s", tool.Name, tool.InputSchema)
		}
		for name, property := range input.Properties {
			if property.Description == "" {
				t.Errorf("%s: nothing is said about the input %s", tool.Name, name)
			}
		}
		if err := json.Unmarshal(tool.OutputSchema, &output); err != nil {
			t.Fatal(err)
		}
		if output.Properties["success"].Type != "boolean" || len(output.Required) != 1 || output.Required[0] != "success" {
			t.Errorf("%s: not every output has success: %s", tool.Name, tool.OutputSchema)
		}
	}
}

// The list of tools stands in the context of every conversation, used or not;
// four bytes are about one token.
func TestListIsShort(t *testing.T) {
	t.Parallel()
	measure := func(tools []servertest.Tool) (shown, sent int) {
		for _, tool := range tools {
			shown += len(tool.Name) + len(tool.Description) + len(tool.InputSchema) // what clients give their models
			raw, err := json.Marshal(tool)
			if err != nil {
				t.Fatal(err)
			}
			sent += len(raw)
		}
		return shown, sent
	}
	all, core := list(t, Groups()), list(t, []Group{Core})
	shown, sent := measure(all)
	shownCore, sentCore := measure(core)
	t.Logf("%d tools, %d bytes, %d of them for a model; core: %d, %d, %d", len(all), sent, shown, len(core), sentCore, shownCore)
	tools := len(core)
	for _, e := range operation.All().Entries() {
		if e.Group != operation.Inside {
			tools++
		}
	}
	if len(core) != 4 || len(all) != tools {
		t.Errorf("%d tools, %d of them core", len(all), len(core))
	}
	if shown > 17_250 || shownCore > 8_000 || sent > 63_000 {
		t.Errorf("the tools take %d bytes, %d of them for a model; the core %d", sent, shown, shownCore)
	}
}

func TestParseGroups(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]int{"": 3, "core": 1, "core,threads": 2, "threads, core": 2, "admin": 1} {
		if groups, err := ParseGroups(list); err != nil || len(groups) != want {
			t.Errorf("%q = %v, %v; want %d", list, groups, err, want)
		}
	}
	for _, list := range []string{"core,", "root", ",", "CORE"} {
		if groups, err := ParseGroups(list); err == nil {
			t.Errorf("%q = %v, want an error", list, groups)
		}
	}
}
