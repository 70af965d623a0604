package executor_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestPythonTools runs tools of the shapes that existing ones have.
func TestPythonTools(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "python3")
	const head = `__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/%RUNTIME%"
CONFIG_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "times": {"type": "integer", "default": 2}}, "required": ["name"]}
`
	function, script := strings.ReplaceAll(head, "%RUNTIME%", "function"), strings.ReplaceAll(head, "%RUNTIME%", "script")
	const main = `
import argparse, json, sys
if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    %PARAMS%
    parser.add_argument("--project-path", required=True)
    args = parser.parse_args()
    params = json.loads(args.params) if getattr(args, "params", None) else json.loads(sys.stdin.read())
    print("on the way")
    print("a log line", file=sys.stderr)
    print(json.dumps({"success": True, "got": params, "project": args.project_path.endswith("project")}, indent=2))
`
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a function": {map[string]string{"a/t.py": function + `
def execute(params, project_path):
    print("this is no result")
    return {"hello": params["name"] * params["times"], "here": project_path.endswith("project")}
`}, `{"hello":"adaada","here":true}`},
		"names of the original package": {map[string]string{"a/t.py": `from rye.constants import AI_DIR, ItemType
from rye.utils.path_utils import get_user_space
` + function + `
def execute(params, project_path):
    import rye
    return {"dir": AI_DIR, "kinds": ItemType.ALL, "user": get_user_space().is_absolute(), "rye": bool(rye.__file__)}
`}, `{"dir":".ai","kinds":["directive","tool","knowledge"],"rye":true,"user":true}`},
		"a coroutine": {map[string]string{"a/t.py": function + `
import asyncio
async def execute(params, project_path):
    await asyncio.sleep(0)
    return {"hello": params["name"]}
`}, `{"hello":"ada"}`},
		"a function that returns a coroutine": {map[string]string{"a/t.py": function + `
async def work(params): return [params["name"]]
def execute(params, project_path): return work(params)
`}, `["ada"]`},
		"nothing returned":    {map[string]string{"a/t.py": function + "def execute(params, project_path): pass\n"}, `{}`},
		"no executor named":   {map[string]string{"a/t.py": "def execute(params, project_path): return params\n"}, `{"name":"ada"}`},
		"one parameter":       {map[string]string{"a/t.py": function + "def execute(params): return params\n"}, `{"name":"ada","times":2}`},
		"an older id":         {map[string]string{"a/t.py": strings.ReplaceAll(head, "rye/core/runtimes/python/%RUNTIME%", "python_function_runtime") + "def execute(params, project_path): return 1\n"}, `1`},
		"no form in JSON":     {map[string]string{"a/t.py": function + "import datetime, pathlib\ndef execute(params, project_path): return {'d': datetime.date(2026, 1, 2), 'p': pathlib.Path('x'), 's': {1}, (1, 2): float('nan')}\n"}, `{"(1, 2)":"nan","d":"2026-01-02","p":"x","s":[1]}`},
		"a sibling, absolute": {map[string]string{"a/t.py": function + "import helper\ndef execute(params, project_path): return helper.X\n", "a/helper.py": "X = 7\n"}, `7`},
		"a sibling, relative": {map[string]string{
			"a/t.py": function + "from .helper import X\nfrom . import other\ndef execute(params, project_path): return X + other.Y\n", "a/__init__.py": "", "a/helper.py": "from .other import Y\nX = 7\n", "a/other.py": "Y = 1\n",
		}, `8`},
		"a package beside it": {map[string]string{
			"a/t.py": function + "from pkg.deep.mod import Z\ndef execute(params, project_path): return Z\n", "a/pkg/__init__.py": "", "a/pkg/deep/mod.py": "from ..near import Z\n", "a/pkg/near.py": "Z = 9\n",
		}, `9`},
		"a package around it": {map[string]string{
			"a/b/t.py": function + "from ..shared import S\ndef execute(params, project_path): return S\n", "a/__init__.py": "N = 1\n", "a/b/__init__.py": "from .. import N\n", "a/shared.py": "S = 5\n",
		}, `5`},
		"lazily": {map[string]string{
			"a/t.py": function + "def execute(params, project_path):\n    from helper import X\n    import json\n    return X\n", "a/helper.py": "X = 3\n",
		}, `3`},
		"a name of the standard library beside it": {map[string]string{
			"a/t.py": function + "import json, queue\ndef execute(params, project_path): return queue.Queue.__module__\n", "a/queue.py": "raise SystemExit(3)\n",
		}, `"queue"`},
		"the runtime's loader": {map[string]string{
			"a/t.py": function + "from pathlib import Path\nfrom module_loader import load_module\nm = load_module('sub/mod', anchor=Path(__file__).parent)\ndef execute(params, project_path): return m.V\n", "a/sub/mod.py": "from .near import V\n", "a/sub/near.py": "V = 4\n",
		}, `4`},
		"its own path": {map[string]string{
			"a/t.py": function + "import sys, os\nsys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), 'sub'))\nimport mod\ndef execute(params, project_path): return mod.V\n", "a/sub/mod.py": "V = 4\n",
		}, `4`},
		"by a spec": {map[string]string{
			"a/t.py": function + "import importlib.util, os\ns = importlib.util.spec_from_file_location('m', os.path.join(os.path.dirname(__file__), 'mod.py'))\nm = importlib.util.module_from_spec(s)\ns.loader.exec_module(m)\ndef execute(params, project_path): return m.V\n", "a/mod.py": "V = 4\n",
		}, `4`},
		"a script":                      {map[string]string{"a/t.py": script + strings.Replace(main, "%PARAMS%", `parser.add_argument("--params", default=None)`, 1)}, `{"got":{"name":"ada","times":2},"project":true,"success":true}`},
		"a script that insists":         {map[string]string{"a/t.py": script + strings.Replace(main, "%PARAMS%", `parser.add_argument("--params", required=True)`, 1)}, `{"got":{"name":"ada","times":2},"project":true,"success":true}`},
		"a script that knows no params": {map[string]string{"a/t.py": script + strings.Replace(main, "%PARAMS%", "pass", 1)}, `{"got":{"name":"ada","times":2},"project":true,"success":true}`},
		"a script in a package": {map[string]string{
			"a/t.py": script + "from .x import Y\nimport z\nprint(Y + z.Z)\n", "a/__init__.py": "", "a/x.py": "Y = 1\n", "a/z.py": "Z = 1\n",
		}, `2`},
		"a script that prints text": {map[string]string{"a/t.py": script + "print('two\\nlines')\n"}, `"two\nlines"`},
		"ENV_CONFIG":                {map[string]string{"a/t.py": function + "ENV_CONFIG = {'env': {'GREETING': 'hi', 'MINE': '${SECRET_OF_A_PROVIDER}', 'NONE': '${NOT_SET:-none}'}}\nimport os\ndef execute(params, project_path): return [os.environ.get(n) for n in ('GREETING', 'MINE', 'NONE')]\n"}, `["hi","key","none"]`},
		"nothing but what is named": {map[string]string{"a/t.py": function + "import os\ndef execute(params, project_path): return [n for n in os.environ if 'SECRET' in n]\n"}, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			id := "a/t"
			for file, text := range c.files {
				b.put(file, text)
				if strings.HasSuffix(file, "/t.py") {
					id = strings.TrimSuffix(file, ".py")
				}
			}
			got, err := b.run(id, `{"name":"ada"}`)
			if err != nil || got != c.want {
				t.Errorf("got %s, %v (%+v)\nwant %s", got, err, tool.AsFault(err), c.want)
			}
		})
	}
}

func TestNodeTools(t *testing.T) {
	t.Parallel()
	needs(t, "node")
	const main = `
import { parseArgs } from "node:util";
export const __executor_id__ = "rye/core/runtimes/node/node";
export const CONFIG_SCHEMA = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const { values } = parseArgs({ options: { params: { type: "string" }, "project-path": { type: "string" } } });
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const params = JSON.parse(values.params ?? Buffer.concat(chunks).toString());
`
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a module":     {map[string]string{"a/t.mjs": main + `console.log(JSON.stringify({ ...params, at: values["project-path"].endsWith("project") }));`}, `{"at":true,"name":"ada"}`},
		"a sibling":    {map[string]string{"a/t.mjs": main + `const { X } = await import("./x.mjs"); console.log(X);`, "a/x.mjs": "export const X = 5;\n"}, `5`},
		"by its name":  {map[string]string{"a/t.cjs": "const x = require('x.cjs'); console.log(JSON.stringify(x));", "a/x.cjs": "module.exports = [1];\n"}, `[1]`},
		"without JSON": {map[string]string{"a/t.js": "console.log('plain');"}, `"plain"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for file, text := range c.files {
				b.put(file, text)
			}
			got, err := b.run("a/t", `{"name":"ada"}`)
			if err != nil || got != c.want {
				t.Errorf("got %s, %v (%+v)\nwant %s", got, err, tool.AsFault(err), c.want)
			}
		})
	}
}

// TypeScript runs where something can run it, and else the person is told what to
// install.
func TestTypeScriptTool(t *testing.T) {
	t.Parallel()
	needs(t, "node")
	b := newBench(t)
	b.put("a/t.ts", `import { parseArgs } from "node:util";
const COMMON = { name: { type: "string" } } as const;
export const __executor_id__ = "rye/core/runtimes/node/node";
export const CONFIG_SCHEMA = { type: "object", properties: { ...COMMON, times: { type: "integer", default: 2 } }, required: ["name"] } as const;
interface Params { name: string; times: number }
const { values } = parseArgs({ options: { params: { type: "string" }, "project-path": { type: "string" } } });
async function main(): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  const params = JSON.parse(values.params ?? Buffer.concat(chunks).toString()) as Params;
  console.log(JSON.stringify({ said: params.name.repeat(params.times), there: values["project-path"]!.endsWith("project") }));
}
if (values["project-path"]) main();
`)
	got, err := b.run("a/t", `{"name":"ada"}`)
	if f := tool.AsFault(err); f != nil && f.Code == tool.CodeUnsupported {
		if !strings.Contains(f.Message, "tsx") || !strings.Contains(f.Try, "tsx") {
			t.Errorf("it does not say what to install: %+v", f)
		}
		t.Skip("neither tsx nor Node 22.18 is installed here; install one of them to run TypeScript in this test")
	}
	if err != nil || got != `{"said":"adaada","there":true}` {
		t.Errorf("got %s, %v", got, err)
	}
}

// A runtime as others have written them: a program on the command line, whose modules
// come by PYTHONPATH, and all files beside the tool signed.
func TestRuntimeOfTheOlderShape(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "python3")
	b := newBench(t)
	b.put("rye/core/runtimes/python/function.yaml", `tool_type: runtime
executor_id: rye/core/primitives/subprocess
env_config:
  interpreter: {type: venv_python, venv_path: .venv, var: RYE_PYTHON, fallback: python3}
  env: {PYTHONUNBUFFERED: "1", USED: "${RYE_PYTHON}"}
anchor:
  enabled: true
  mode: auto
  markers_any: ["__init__.py", "pyproject.toml"]
  root: tool_dir
  lib: lib
  env_paths: {PYTHONPATH: {prepend: ["{anchor_path}", "{runtime_lib}"]}}
verify_deps:
  enabled: true
  scope: anchor
  recursive: true
  extensions: [".py", ".yaml", ".json"]
  exclude_dirs: ["__pycache__", ".git"]
config:
  command: "${RYE_PYTHON}"
  args:
    - "-c"
    - "import sys, json, runpy; m = runpy.run_path(sys.argv[1]); print(json.dumps(m['execute'](json.load(sys.stdin), sys.argv[2])))"
    - "{tool_path}"
    - "{project_path}"
  input_data: "{params_json}"
  timeout: 300
`)
	b.put("a/__init__.py", "")
	b.put("a/near.py", "N = 2\n")
	b.put("rye/core/runtimes/python/lib/shared.py", "S = 3\n")
	b.put("a/t.py", "__executor_id__ = 'rye/core/runtimes/python/function'\nimport near, shared\ndef execute(params, project_path): return params['n'] * near.N * shared.S\n")
	if got, err := b.run("a/t", `{"n":7}`); err != nil || got != "42" {
		t.Errorf("got %s, %v", got, err)
	}
	b.write("a/draft.py", "N = 1\n", false)
	if _, err := b.run("a/t", `{"n":7}`); !errors.Is(err, sign.ErrUnsigned) || !strings.Contains(err.Error(), "a/draft") {
		t.Errorf("got %v", err)
	}
	if err := os.Rename(filepath.Join(b.project, ".ai/tools/a/draft.py"), filepath.Join(b.project, ".ai/tools/a/near.so")); err != nil {
		t.Fatal(err)
	}
	_, err := b.run("a/t", `{"n":7}`)
	b.refused(err, tool.CodeIntegrity, "cannot be signed")
}

func TestShellTools(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, text, args, want string }{
		"a script":        {"a/t.sh", "#!/bin/bash\n# Counts.\nread -r json\necho \"$json $1 ${2##*/} $(basename \"$0\")\"\n", `{"a":1}`, `"{\"a\":1} --project-path project t.sh"`},
		"not its command": {"a/t.sh", "echo mine\n", `{"command":"echo stolen"}`, `"mine"`},
		"a command line": {"a/t.yaml", "executor_id: rye/core/runtimes/bash/bash\nconfig: {command: 'echo hello {who} \"$(cat)\"'}\nparameters: [{name: who, type: string, default: you}]\n",
			`{"who":"a; echo $(id)"}`, `"hello a; echo $(id) {\"who\":\"a; echo $(id)\"}"`},
		"a parameter left out":  {"a/t.yaml", "executor_id: rye/core/runtimes/bash/bash\nconfig: {command: 'echo [{who}] {other}'}\nparameters: [{name: who, type: string}]\n", `{}`, `"[] {other}"`},
		"a command of the call": {"a/t.yaml", "executor_id: bash_runtime\nparameters: [{name: command, type: string, required: true}]\n", `{"command":"echo $((6*7))"}`, `42`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put(c.file, c.text)
			if got, err := b.run("a/t", c.args); err != nil || got != c.want {
				t.Errorf("got %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

// A YAML tool has no program in its own file: what its runtime runs must be said, by its
// author and not by a caller.
func TestYAMLToolsThatNameNothingToRun(t *testing.T) {
	t.Parallel()
	const bash, described = "executor_id: rye/core/runtimes/bash/bash\n", "description: touch stolen\n"
	for name, c := range map[string]struct {
		text string
		code tool.Code
		part string
	}{
		"no config":               {bash + described, tool.CodeInvalidItem, "a/t names no `config.command`, a text"},
		"a slip in config":        {bash + "confg: {command: echo}\n", tool.CodeInvalidItem, "did you mean config by confg?"},
		"a slip in command":       {bash + "config: {comand: echo}\n", tool.CodeInvalidItem, "did you mean command by config.comand?"},
		"a command beside config": {bash + "command: echo\n", tool.CodeInvalidItem, "did you mean config.command by command?"},
		"a list":                  {bash + "config: {command: [echo, a]}\n", tool.CodeInvalidItem, "a text"},
		"an empty command":        {bash + "config: {command: ' '}\n", tool.CodeInvalidItem, "a text"},
		"arguments of its own":    {bash + "config: {command: echo, args: ['{p}', done]}\nparameters: [{name: p, type: string}]\n", tool.CodeInvalidItem, "would replace the arguments"},
		"a command not given":     {bash + described + "parameters: [{name: command, type: string}]\n", tool.CodeBadArguments, "needs the parameter command"},
		"a Python script":         {"executor_id: rye/core/runtimes/python/script\n" + described, tool.CodeInvalidItem, "runs a program (.py)"},
		"a Python function":       {"executor_id: python_function_runtime\nconfig: {command: python3}\n", tool.CodeInvalidItem, "runs a program (.py)"},
		"a Node program":          {"executor_id: rye/core/runtimes/node/node\n", tool.CodeInvalidItem, "runs a program (.js"},
		"a limit of words":        {bash + "config: {command: echo, timeout: soon}\n", tool.CodeInvalidItem, "the timeout of a/t is soon"},
		"a limit of nothing":      {bash + "config: {command: echo, timeout: 0}\n", tool.CodeInvalidItem, "more than 0"},
		"behind another runtime":  {"executor_id: lang/mine\n", tool.CodeInvalidItem, "names no `config.command`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put("lang/mine.yaml", "tool_type: runtime\n"+bash)
			b.put("a/t.yaml", c.text)
			_, err := b.run("a/t", `{}`)
			b.refused(err, c.code, c.part)
			if c.code != tool.CodeInvalidItem {
				return
			}
			if _, err := b.find("a/t"); err == nil {
				t.Error("it is found as if it could be run")
			}
			found, err := resolve.New(b.roots).Find(item.Tool, "a/t")
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.Examine(found)
			b.refused(err, c.code, c.part)
		})
	}
}

// A time limit that the call says is looked at when it is called.
func TestTimeLimitOfACall(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a/t.yaml", "executor_id: rye/core/runtimes/bash/bash\nconfig: {command: echo done, timeout: '{limit}'}\nparameters: [{name: limit, type: number}]\n")
	found, err := resolve.New(b.roots).Find(item.Tool, "a/t")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Examine(found); err != nil {
		t.Error(err)
	}
	if got, err := b.run("a/t", `{"limit": 60}`); err != nil || !strings.Contains(got, "done") {
		t.Errorf("got %s, %v", got, err)
	}
	_, err = b.run("a/t", `{"limit": 0}`)
	b.refused(err, tool.CodeInvalidItem, "the timeout of a/t is 0")
}

// A schema that no call can be checked against is told when the tool is signed, in the words of
// a call.
func TestSchemasThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ property, part string }{
		"unknown type":     {`{"type": "strin"}`, `a/t: schema: /properties/p/type: value must be one of "array"`},
		"broken pattern":   {`{"pattern": "(?<p"}`, "a/t: schema: /properties/p/pattern: "},
		"foreign schema":   {`{"$ref": "http://example.com/x.json"}`, "a schema may refer to itself only"},
		"one that is good": {`{"type": "string", "pattern": "^a"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put("a/t.py", `CONFIG_SCHEMA = {"type": "object", "properties": {"p": `+c.property+"}}\ndef execute(params, project_path):\n    return 1\n")
			found, err := resolve.New(b.roots).Find(item.Tool, "a/t")
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.Examine(found)
			if c.part == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			b.refused(err, tool.CodeInvalidItem, c.part)
			_, err = b.run("a/t", `{}`)
			b.refused(err, tool.CodeInvalidItem, c.part)
		})
	}
}
