package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
)

var update = flag.Bool("update", false, "write the golden files of the tools")

// list returns the tools as a client sees them who has to name projects, with the
// schemas of their answers.
func list(t *testing.T, groups []Group) []servertest.Tool {
	t.Helper()
	return listOf(t, groups, server.Options{Version: "test", OutputSchemas: true}, true)
}

func listOf(t *testing.T, groups []Group, options server.Options, several bool) []servertest.Tool {
	t.Helper()
	s := server.New(options)
	Register(s, oneProject{several: several}, groups, operation.All())
	return servertest.Start(t, s).Tools()
}

// The texts that a client is told about each tool change only on purpose.
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
	derivedFrom := server.New(server.Options{Version: "test"})
	Register(derivedFrom, oneProject{}, Groups(), operation.All())
	wantInputs, wantOutputs := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for name, schemas := range derivedFrom.Schemas() {
		var err error
		wantInputs[name] = schemas.Input
		if wantOutputs[name], err = schemas.Output(); err != nil {
			t.Fatal(err)
		}
	}
	sameFile(t, "schemas/inputs.json", inputsFile, wantInputs)
	sameFile(t, "schemas/outputs.json", outputsFile, wantOutputs)
	types := list(t, Groups())
	for i, tool := range listOf(t, Groups(), server.Options{Version: "test", Schemas: Schemas(), OutputSchemas: true}, true) {
		if !bytes.Equal(tool.InputSchema, types[i].InputSchema) || !bytes.Equal(tool.OutputSchema, types[i].OutputSchema) {
			t.Errorf("%s: a client is told other schemas than those of the types", tool.Name)
		}
	}
}

// sameFile checks a file of schemas that is part of the program, or writes it.
func sameFile(t *testing.T, path string, got []byte, schemas map[string]json.RawMessage) {
	t.Helper()
	want, err := json.Marshal(schemas)
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from the types; with -update it is written anew", path)
	}
}

// The rules that hold for every tool.
func TestInventory(t *testing.T) {
	t.Parallel()
	portable := regexp.MustCompile(`^[A-Za-z0-9_]{1,46}$`)
	checked := Schemas()
	for _, tool := range list(t, Groups()) {
		if !portable.MatchString(tool.Name) {
			t.Errorf("%s: not a name that every client leaves as it is", tool.Name)
		}
		if tool.Title == "" || len(tool.Description) < 40 || len(tool.Description) > 2048 {
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
			Properties map[string]struct {
				Type, Description string
				Enum              []string
			}
			Required   []string
			Additional *bool `json:"additionalProperties"`
		}
		if err := json.Unmarshal(tool.InputSchema, &input); err != nil {
			t.Fatal(err)
		}
		if input.Type != "object" || bytes.Contains(tool.InputSchema, []byte("additionalProperties")) {
			t.Errorf("%s: the input is told to be closed: %s", tool.Name, tool.InputSchema)
		}
		sameMeaning(t, tool, checked[tool.Name].Input)
		for name, property := range input.Properties {
			if property.Description == "" && len(property.Enum) == 0 && !plain[name] && !strings.Contains(tool.Description, name) {
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

// plain are inputs whose names say what they are.
var plain = map[string]bool{
	"thread_id": true, "thread_ids": true, "limit": true, "directive": true, "query": true, "project_path": true,
	"cursor": true, "parent_id": true, "max_bytes": true, "message": true, "name": true, "model": true, "item_id": true, "offset": true,
}

// untoldInputs are inputs that clients are not told of: other tools do the same, or a
// guide tells of them to those who need them.
var untoldInputs = map[string][]string{
	"rye_execute": {"resume_thread_id", "trace"}, "rye_fetch": {"query", "scope", "limit", "overwrite"},
	"rye_search": {"fields", "fuzzy", "proximity"},
}

// sameMeaning fails unless what a client is told has every name, type, value to choose
// from, default and required name of what is checked.
func sameMeaning(t *testing.T, told servertest.Tool, checked json.RawMessage) {
	t.Helper()
	type schema struct {
		Properties map[string]struct {
			Type    any
			Enum    []string
			Default any
			Items   struct{ Type any }
		}
		Required []string
	}
	var got, want schema
	if err := errors.Join(json.Unmarshal(told.InputSchema, &got), json.Unmarshal(checked, &want)); err != nil {
		t.Fatal(err)
	}
	untold := untoldInputs[told.Name]
	for _, e := range operation.All().Entries() {
		if e.Name == told.Name {
			untold = e.Untold
			if findsProject(e) {
				untold = append(slices.Clone(untold), projectPath)
			}
		}
	}
	for _, name := range untold {
		delete(want.Properties, name)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s is told as %+v and checked as %+v", told.Name, got, want)
	}
}

// shownBytes is what clients give their models of a tool: its name, its description
// and the schema of its input.
func shownBytes(tool servertest.Tool) int {
	return len(tool.Name) + len(tool.Description) + len(tool.InputSchema)
}

// The list of tools stands in the context of every conversation, used or not; four
// bytes are about one token. The bytes of each tool stand in testdata/bytes.txt.
func TestListIsShort(t *testing.T) {
	t.Parallel()
	short := server.Options{Version: "test"}
	shown := func(several bool, groups ...Group) (sum int) {
		for _, tool := range listOf(t, groups, short, several) {
			sum += shownBytes(tool)
		}
		return sum
	}
	var b strings.Builder
	b.WriteString("# Bytes of tools/list that a client puts into the context of its model (names, descriptions, input schemas),\n" +
		"# of each group and of each tool, where there is one project and where calls name theirs. Written with -update.\n")
	row := func(name string, one, several int) { fmt.Fprintf(&b, "%-20s %6d %6d\n", name, one, several) }
	row("all", shown(false, Groups()...), shown(true, Groups()...))
	for _, g := range Groups() {
		row("--tools "+string(g), shown(false, g), shown(true, g))
	}
	several := listOf(t, Groups(), short, true)
	for i, tool := range listOf(t, Groups(), short, false) {
		row(tool.Name, shownBytes(tool), shownBytes(several[i]))
	}
	sent := func(tools []servertest.Tool) (sum int) {
		for _, tool := range tools {
			raw, err := json.Marshal(tool)
			if err != nil {
				t.Fatal(err)
			}
			sum += len(raw)
		}
		return sum
	}
	row("as sent", sent(listOf(t, Groups(), short, false)), sent(several))
	row("--output-schemas", sent(listOf(t, Groups(), server.Options{Version: "test", OutputSchemas: true}, false)), sent(list(t, Groups())))
	golden(t, "bytes.txt", b.String())
	if all, core := shown(true, Groups()...), shown(true, Core); all > 10_240 || core > 4_096 {
		t.Errorf("the tools take %d bytes of a model's context, the core %d", all, core)
	}
	tools := 4
	for _, e := range operation.All().Entries() {
		if e.Group != operation.Inside {
			tools++
		}
	}
	if n := len(several); n != tools {
		t.Errorf("%d tools, want %d", n, tools)
	}
	for _, tool := range listOf(t, Groups(), short, false) {
		if tool.OutputSchema != nil || bytes.Contains(tool.InputSchema, []byte(projectPath)) {
			t.Errorf("%s: tells of its output, or of project_path where there is one project: %s", tool.Name, tool.InputSchema)
		}
	}
}

// golden compares what a test found with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s has\n%s\nand now it is\n%s\nwith -update it is written anew", path, want, got)
	}
}

// Clients look for tools by the words of their users.
func TestWordsOfUsers(t *testing.T) {
	t.Parallel()
	words := map[string][]string{
		"rye_execute":  {"delegate", "subagent", "background", "in parallel", "own"},
		"wait_threads": {"subagents", "background", "results"},
	}
	if core := list(t, []Group{Core}); !strings.Contains(core[0].Description, operationsText) {
		t.Errorf("without tools of operations, %s does not say how they are reached", core[0].Name)
	}
	for _, tool := range list(t, Groups()) {
		if strings.Contains(tool.Description, operationsText) {
			t.Errorf("%s says how operations are reached that have tools", tool.Name)
		}
		for _, word := range words[tool.Name] {
			if !strings.Contains(tool.Description, word) {
				t.Errorf("%s does not say %q, which users do", tool.Name, word)
			}
		}
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
