// Package itemtest checks that the items of built-in tools in the system space
// say what their definitions in Go say.
package itemtest

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// systemTools is the folder of tools in the system space, as tests of packages at
// the second level see it.
const systemTools = "../../spaces/system/ai/tools"

// toolItem is a built-in tool as an item, in the order of its keys.
type toolItem struct {
	Version     string    `yaml:"version"`
	ToolType    string    `yaml:"tool_type"`
	ExecutorID  string    `yaml:"executor_id"`
	Category    string    `yaml:"category"`
	Description string    `yaml:"description"`
	Parameters  yaml.Node `yaml:"parameters"`
}

// Check compares the item of a tool with its definition; with update the item is
// written anew.
func Check(t *testing.T, d tool.Definition, update bool) {
	t.Helper()
	name := filepath.Join(systemTools, filepath.FromSlash(d.ID)+".yaml")
	want := renderItem(t, d)
	if update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v; go test . -update writes it", err)
	}
	if got = parse.StripSignature(got); !bytes.Equal(got, want) {
		t.Errorf("%s differs from the Go definition; go test . -update rewrites it\ngot\n%s\nwant\n%s", name, got, want)
	}
	checkParsed(t, name, got, d)
}

func checkParsed(t *testing.T, name string, src []byte, d tool.Definition) {
	t.Helper()
	doc, err := parse.Tool(name, src)
	if err != nil {
		t.Fatal(err)
	}
	if doc.ExecutorID != chain.Builtin || doc.Description != d.Description {
		t.Errorf("reads as executor %q, description %q", doc.ExecutorID, doc.Description)
	}
	raw, err := json.Marshal(doc.Schema)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(d.Schema, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the schema reads as\n%s\nwant\n%s", raw, d.Schema)
	}
}

func renderItem(t *testing.T, d tool.Definition) []byte {
	t.Helper()
	i := toolItem{
		Version: "1.0.0", ToolType: "builtin", ExecutorID: chain.Builtin, Category: path.Dir(d.ID), Description: d.Description,
	}
	var doc yaml.Node // JSON is YAML, and a node keeps the order of the keys
	if err := yaml.Unmarshal(d.Schema, &doc); err != nil {
		t.Fatal(err)
	}
	i.Parameters = *doc.Content[0]
	plainStyle(&i.Parameters)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(i); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// plainStyle forgets the braces and quotes of JSON.
func plainStyle(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		plainStyle(c)
	}
}
