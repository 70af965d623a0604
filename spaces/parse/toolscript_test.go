package parse_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

const pythonTool = `#!/usr/bin/env python3
# rye:signed:2026-01-02T03:04:05Z:00:AAAA:0123456789abcdef
"""Looks things up.

At length.
"""
import json

__version__ = "1.2.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/script"
__category__ = "team/lookup"
__tool_description__ = (
    "Looks a thing up "
    "by its name"
)
ACTIONS = ["get", "list"]
CONFIG_SCHEMA = {
    "type": "object",
    "properties": {"action": {"type": "string", "enum": ACTIONS}},
}
ENV_CONFIG = {"env": {"TOKEN": "${TOKEN}"}}
CONFIG_RESOLVE = None


def execute(params, project_path):
    __version__ = "9"
    return json.dumps(params)
`

const typeScriptTool = `#!/usr/bin/env node
// rye:signed:2026-01-02T03:04:05Z:00:AAAA:0123456789abcdef
// Looks things up.
import { z } from "zod";
export const __version__ = "1.2.0";
export const __tool_type__ = "python" as const;
export const __executor_id__: string = "rye/core/runtimes/python/script";
export const __category__ = 'team/lookup', __tool_description__ = "Looks a thing up " + "by its name";
const ACTIONS = ["get", "list"] as const;
export const CONFIG_SCHEMA = {
  type: "object",
  properties: { action: { type: "string", enum: [...ACTIONS] } },
} satisfies object;
export const ENV_CONFIG = { env: { TOKEN: "${TOKEN}" } };
export const CONFIG_RESOLVE = null;
export default async function execute(params: { action: string }) {}
`

// The same tool says the same in either language, whatever its line ends.
func TestScriptTool(t *testing.T) {
	t.Parallel()
	schema := map[string]any{"type": "object", "properties": map[string]any{
		"action": map[string]any{"type": "string", "enum": []any{"get", "list"}},
	}}
	want := &item.ToolDoc{
		Version: "1.2.0", ToolType: "python", ExecutorID: "rye/core/runtimes/python/script", Category: "team/lookup",
		Description: "Looks a thing up by its name", Schema: schema,
		Metadata: map[string]any{
			"version": "1.2.0", "tool_type": "python", "executor_id": "rye/core/runtimes/python/script",
			"category": "team/lookup", "description": "Looks a thing up by its name", "config_schema": schema,
			"env_config": map[string]any{"env": map[string]any{"TOKEN": "${TOKEN}"}}, "config_resolve": nil,
		},
	}
	for path, src := range map[string]string{"t.py": pythonTool, "t.ts": typeScriptTool} {
		for _, src := range []string{src, strings.ReplaceAll(src, "\n", "\r\n"), "\ufeff" + src} {
			doc, err := parse.Tool(path, []byte(src))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(doc, want) {
				t.Errorf("%s: got\n%+v\nwant\n%+v", path, doc, want)
			}
		}
	}
}

func TestScriptToolNotes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path, src  string
		note       string // about the schema
		notes      int
		hasSchema  bool
		executorID string
	}{
		"imported": {"t.py", "#!/usr/bin/python3\nfrom rye.lib import ACTIONS\nCONFIG_SCHEMA = {'enum': ACTIONS}\n__executor_id__ = 'x'",
			"schema not static: it uses ACTIONS, which is imported on line 2 (line 3); its parameters are not checked", 1, false, "x"},
		"executor": {"t.py", "__executor_id__ = find()\nCONFIG_SCHEMA = {}", "", 1, true, ""},
		"text":     {"t.js", "const CONFIG_SCHEMA = 'x'", "schema is not a JSON Schema of an object (line 1); its parameters are not checked", 1, false, ""},
		"tag":      {"t.js", "/**\n * @executor_id x\n */\nconst __executor_id__ = find()", "", 1, false, ""},
		"none":     {"t.py", "CONFIG_SCHEMA = None", "", 0, false, ""},
		"nothing":  {"t.mjs", "run()", "", 0, false, ""},
		"template": {"t.ts", "\nexport const CONFIG_SCHEMA = { a: `${b}` }",
			"schema not static: it cannot be read at `${ (line 2); its parameters are not checked", 1, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := parse.Tool(tt.path, []byte(tt.src))
			if err != nil {
				t.Fatal(err)
			}
			if doc.SchemaNote() != tt.note || len(doc.Notes) != tt.notes || (doc.Schema != nil) != tt.hasSchema || doc.ExecutorID != tt.executorID {
				t.Errorf("note %q; %+v", doc.SchemaNote(), doc)
			}
		})
	}
}

func TestJSDoc(t *testing.T) {
	t.Parallel()
	doc, err := parse.Tool("t.js", []byte(`// rye:signed:x
/**
 * Counts words.
 *
 * @version 1.0.0
 * @executor_id rye/core/runtimes/node
 * @param {string} text - what to
 *   count in
 * @param {int} [most=10] how many
 * @param {string[]} [words]
 */
export function execute() {}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{"text"},
		"properties": map[string]any{
			"text":  map[string]any{"type": "string", "description": "what to count in"},
			"most":  map[string]any{"type": "integer", "description": "how many", "default": int64(10)},
			"words": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		},
	}
	if doc.Version != "1.0.0" || doc.ExecutorID != "rye/core/runtimes/node" || doc.Description != "Counts words." || !reflect.DeepEqual(doc.Schema, want) {
		t.Errorf("%+v", doc)
	}
	for name, src := range map[string]string{
		"of a function":  "/**\n * Runs.\n * @param {object} params\n */\nexport function execute(params) {}",
		"of a part":      "/**\n * @version 1\n * @param {string} a\n * @param {string} a.b\n */",
		"unknown type":   "/**\n * @version 1\n * @param {Promise} a\n */",
		"bad default":    "/**\n * @version 1\n * @param {int} [a=x]\n */",
		"half a bracket": "/**\n * @version 1\n * @param {int} [a\n */",
		"constant wins":  "/**\n * @version 1\n * @param {int} a\n */\nconst CONFIG_SCHEMA = f()",
	} {
		if doc, err := parse.Tool("t.js", []byte(src)); err != nil || doc.Schema != nil {
			t.Errorf("%s: %+v, %v", name, doc, err)
		}
	}
}

// The first comment of a shell script declares what other languages have constants for.
func TestShellTags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		comment, schema string
		network         any
	}{
		"parameters":    {"# Counts.\n# @param {string} path - a file\n# @param {int} [most=3]\n", `{"additionalProperties":false,"properties":{"most":{"default":3,"type":"integer"},"path":{"description":"a file","type":"string"}},"required":["path"],"type":"object"}`, nil},
		"not all known": {"# Counts.\n# @param {string} path\n# @param $1 more\n", "null", nil},
		"none":          {"# Counts.\n", "null", nil},
		"network":       {"# Counts.\n# @network true\n", "null", true},
		"no network":    {"# Counts.\n# @network false\n", "null", false},
		"no parameters": {"# Counts.\n# @param none\n", `{"additionalProperties":false,"properties":{},"type":"object"}`, nil},
		"both":          {"# Counts.\n# @param none\n# @param {string} path\n", `{"additionalProperties":false,"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"}`, nil},
		"network, bare": {"# Counts.\n# @network\n", "null", true},
		"network, why":  {"# Counts.\n# @network true - it asks\n# an API\n", "null", true},
		"hosts, tab":    {"# Counts.\n# @network a.example.com,\tb.example.com\n", "null", []any{"a.example.com", "b.example.com"}},
		"hosts":         {"# Counts.\n# @network a.example.com, b.example.com\n", "null", []any{"a.example.com", "b.example.com"}},
		"further below": {"# Counts.\n\n# @network true\n", "null", nil},
	} {
		doc, err := parse.Tool("t.sh", []byte("#!/bin/sh\n"+c.comment+"\ntrue\n"))
		if err != nil {
			t.Fatal(err)
		}
		schema, err := json.Marshal(doc.Schema)
		if err != nil || doc.Description != "Counts." || string(schema) != c.schema || !reflect.DeepEqual(doc.Metadata["network"], c.network) {
			t.Errorf("%s: %s, %+v", name, schema, doc)
		}
	}
}

// A script that is no text is refused like every such item.
func TestScriptToolErrors(t *testing.T) {
	t.Parallel()
	for src, reason := range map[string]string{
		"A = 1\nB = '\xff'": "UTF-8", "A = 1\n\x00": "NUL", strings.Repeat("#\n", parse.MaxBytes/2+1): "bytes",
	} {
		for _, ext := range item.Tool.Extensions() {
			_, err := parse.Tool("t"+ext, []byte(src))
			var e *parse.Error
			if !errors.As(err, &e) || !strings.Contains(e.Reason, reason) || e.Line < 1 || !slices.Contains([]int{1, 2}, e.Line) {
				t.Errorf("%s: %v", ext, err)
			}
		}
	}
}
