package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// checked calls a tool of mcp-go alone, which checks arguments and results by the module
// that stands in for version 6 of jsonschema, and returns the text of the result.
func checked(t *testing.T, input, output, arguments string, result any) (text string, failed bool) {
	t.Helper()
	s := mcpserver.NewMCPServer("x", "1", mcpserver.WithInputSchemaValidation(), mcpserver.WithOutputSchemaValidation())
	tool := mcp.NewToolWithRawSchema("tool", "", json.RawMessage(input))
	if output != "" {
		tool.RawOutputSchema = json.RawMessage(output)
	}
	s.AddTool(tool, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultStructured(result, "done"), nil
	})
	answer, err := json.Marshal(s.HandleMessage(t.Context(), json.RawMessage(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool","arguments":`+arguments+`}}`)))
	if err != nil {
		t.Fatal(err)
	}
	var message struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal(answer, &message); err != nil || len(message.Result.Content) != 1 {
		t.Fatalf("%s (%v)", answer, err)
	}
	return message.Result.Content[0].Text, message.Result.IsError
}

func TestLibraryChecksArguments(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["n"],"additionalProperties":false,"$defs":{"count":{"type":"integer","minimum":1}},
		"properties":{"n":{"$ref":"#/$defs/count"},"list/of":{"type":"array","items":{"type":"string"}},"50% ~é":{"type":"string"}}}`
	for arguments, wants := range map[string][]string{
		`{"n":1,"list/of":["a"]}`:   nil,
		`{"n":9007199254740993}`:    nil, // exactly
		`{"n":0}`:                   {"/n: ", "1"},
		`{}`:                        {"<root>: ", "'n'"},
		`{"n":1,"list/of":["a",2]}`: {"/list~1of/1: ", "string"},
		`{"n":1,"50% ~é":2}`:        {"/50% ~0é: ", "string"},
		`{"n":"x","m":1}`:           {"/n: ", "; ", "'m'"},
	} {
		text, failed := checked(t, schema, "", arguments, nil)
		if failed != (wants != nil) {
			t.Errorf("%s: %q, failed: %v", arguments, text, failed)
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q lacks %q", arguments, text, want)
			}
		}
	}
}

func TestLibraryChecksResults(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}}}`
	if text, failed := checked(t, `{"type":"object"}`, schema, `{}`, map[string]any{"n": 1}); failed {
		t.Errorf("refused: %s", text)
	}
	if text, failed := checked(t, `{"type":"object"}`, schema, `{}`, map[string]any{"n": "x"}); !failed || !strings.Contains(text, "/n") {
		t.Errorf("accepted: %s", text)
	}
}

// TestLibraryLoadsNoSchema: a schema that refers to a file or an address cannot have it read.
// mcp-go checks nothing by a schema that it cannot compile.
func TestLibraryLoadsNoSchema(t *testing.T) {
	t.Parallel()
	var asked atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "never.json")
	if err := os.WriteFile(file, []byte(`false`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{server.URL + "/schema.json", "file://" + file} {
		if text, failed := checked(t, `{"$ref":"`+at+`"}`, "", `{}`, nil); failed {
			t.Errorf("%s was read: %s", at, text)
		}
	}
	if asked.Load() {
		t.Error("an address was asked")
	}
}
