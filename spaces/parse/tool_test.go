package parse_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

func TestYAMLTool(t *testing.T) {
	t.Parallel()
	closed := map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{"service"},
		"properties": map[string]any{
			"service":  map[string]any{"type": "string", "description": "Which"},
			"replicas": map[string]any{"type": "integer", "default": int64(1), "minimum": int64(0)},
		},
	}
	literal := map[string]any{"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}}
	tests := []struct {
		name, src string
		want      map[string]any
	}{
		{"none", "version: 1", nil},
		{"null", "config_schema: ~\nparameters:", nil},
		{"config_schema", "config_schema:\n  type: object\n  properties:\n    command: {type: string}", literal},
		{"input_schema", "input_schema: {type: object, properties: {command: {type: string}}}", literal},
		{"parameters as a schema", "parameters: {type: object, properties: {command: {type: string}}}", literal},
		{"parameters as a list", "parameters:\n- {name: service, type: str, required: true, description: Which}\n" +
			"- name: replicas\n  type: int\n  default: 1\n  minimum: 0\n  required: false", closed},
		{"parameters by name", "parameters:\n  service: {required: true, description: Which}\n" +
			"  replicas: {type: integer, default: 1, minimum: 0}", closed},
		{"parameters through a merge key", "common: &c {replicas: {type: integer, default: 1, minimum: 0}}\n" +
			"parameters:\n  <<: *c\n  service: {required: true, description: Which}", closed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc, err := parse.Tool("t.yaml", []byte("# rye:signed:x\n"+tt.src+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(doc.Schema, tt.want) {
				t.Errorf("got\n%#v\nwant\n%#v", doc.Schema, tt.want)
			}
		})
	}
}

func TestYAMLToolMetadata(t *testing.T) {
	t.Parallel()
	const src = `# rye:signed:2026-01-02T03:04:05Z:00:AAAA:0123456789abcdef
version: 1.0
tool_type: runtime
executor_id: null
category: team/run
description: >-
  Runs
  things
env_config: {env: {PATH: "${PATH}"}}
config: {command: /bin/sh, args: ["-c", "{command}"], timeout: 300}
`
	doc, err := parse.Tool("/p/.ai/tools/team/run.yml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	want := &item.ToolDoc{
		Version: "1.0", ToolType: "runtime", Category: "team/run", Description: "Runs things",
		Metadata: map[string]any{
			"version": 1.0, "tool_type": "runtime", "executor_id": nil, "category": "team/run", "description": "Runs things",
			"env_config": map[string]any{"env": map[string]any{"PATH": "${PATH}"}},
			"config":     map[string]any{"command": "/bin/sh", "args": []any{"-c", "{command}"}, "timeout": int64(300)},
		},
	}
	if !reflect.DeepEqual(doc, want) {
		t.Errorf("got\n%#v\nwant\n%#v", doc, want)
	}
}

func TestToolErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, path, src string
		line            int
		words           []string
	}{
		{"extension", "t.rb", "x", 1, []string{".rb", ".py .yaml"}},
		{"no extension", "tool", "x", 1, []string{"extension"}},
		{"empty", "t.yaml", "", 1, []string{"mapping"}},
		{"list", "t.yaml", "- a", 1, []string{"mapping"}},
		{"syntax", "t.yaml", "# c\na: b: c\n", 2, []string{"YAML"}},
		{"executor is a list", "t.yaml", "version: 1\nexecutor_id: [a]\n", 2, []string{"executor_id must be text"}},
		{"two schemas", "t.yaml", "parameters: []\nconfig_schema: {}\n", 1, []string{"config_schema", "parameters", "keep one"}},
		{"schema is text", "t.yaml", "\nconfig_schema: x\n", 2, []string{"JSON Schema"}},
		{"input_schema is a list", "t.yaml", "input_schema: []\n", 1, []string{"JSON Schema"}},
		{"parameter is text", "t.yaml", "parameters:\n- a\n", 2, []string{"mapping"}},
		{"parameter without name", "t.yaml", "parameters:\n- name: a\n- type: string\n", 3, []string{"name"}},
		{"parameter twice", "t.yaml", "parameters:\n- name: a\n- name: a\n", 3, []string{`"a"`, "twice"}},
		{"parameter type", "t.yaml", "parameters:\n  a:\n    type: date\n", 2, []string{`"a"`, "date"}},
		{"parameter type is a list", "t.yaml", "parameters:\n- name: a\n  type: [x]\n", 2, []string{"type"}},
		{"parameter required", "t.yaml", "parameters:\n- name: a\n  required: sure\n", 2, []string{"true or false"}},
		{"merged parameter is text", "t.yaml", "common: &c {a: x}\nparameters:\n  <<: *c\n", 3, []string{`"a"`}},
		{"parameter by name is text", "t.yaml", "parameters:\n  a: string\n", 2, []string{`"a"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc, err := parse.Tool(tt.path, []byte(tt.src))
			if doc != nil {
				t.Errorf("got %+v beside the error", doc)
			}
			wantError(t, err, tt.line, tt.words...)
		})
	}
}

func TestScriptDescription(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, path, src, want string }{
		{"python docstring", "t.py", "#!/usr/bin/env python3\n# rye:signed:x\n# -*- coding: utf-8 -*-\n\"\"\"Does a thing.\n\nIn detail.\n\"\"\"\nx = 1", "Does a thing."},
		{"python docstring behind a comment", "t.py", "# Copyright us\n\nr'''\n  Does a\n  thing.\n'''", "Does a thing."},
		{"python short docstring", "t.py", "\"Does a thing.\"\nx = '\"'", "Does a thing."},
		{"python comment", "t.py", "# rye:signed:x\n# Does a\n# thing.\n#\n# More.\nimport os", "Does a thing."},
		{"python docstring never closed", "t.py", "# Comment.\n\"\"\"open", "Comment."},
		{"python without", "t.py", "import os\n# later\n\"\"\"no\"\"\"", ""},
		{"shell", "t.sh", "#!/bin/sh\n# rye:signed:x\n\n# Does a thing.\n\n# Not this.\nls", "Does a thing."},
		{"shell without", "t.sh", "#!/bin/sh\nls\n# later", ""},
		{"js block", "t.js", "/**\n * Does a thing,\n * slowly.\n * @param x\n */\nx()", "Does a thing, slowly."},
		{"ts lines", "t.ts", "// rye:signed:x\n// Does a thing.\n//\n// More.\n", "Does a thing."},
		{"js block never closed", "t.mjs", "/* Does a thing.", "Does a thing."},
		{"only a shebang", "t.cjs", "#!/usr/bin/env node", ""},
		{"empty", "t.js", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, src := range []string{tt.src, strings.ReplaceAll(tt.src, "\n", "\r\n")} {
				doc, err := parse.Tool(tt.path, []byte(src))
				if err != nil {
					t.Fatal(err)
				}
				if doc.Description != tt.want || doc.Schema != nil {
					t.Errorf("description %q, schema %v, want %q and none", doc.Description, doc.Schema, tt.want)
				}
			}
		})
	}
}
