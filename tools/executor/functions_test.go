package executor_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const wordsSchema = `CONFIG_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}, "unit": {"type": "string"}}, "required": ["text"]}
`

// A function gets what its parameters are called, in a process of its own and in one that
// is kept; one that cannot be called is refused with the right form.
func TestPythonFunctionTakesParametersByName(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "python3")
	for name, c := range map[string]struct{ head, text, args, want, refused string }{
		"by names":              {wordsSchema, "def execute(text, unit='words'): return [len(text.split()), unit]", `{"text":"to be or not"}`, `[4,"words"]`, ""},
		"by names, and project": {wordsSchema, "def execute(text, project_path, unit=None): return [text, project_path.endswith('project'), unit]", `{"text":"a","unit":"b"}`, `["a",true,"b"]`, ""},
		"without a schema":      {"", "def execute(text, unit='words'): return [text, unit]", `{"text":"a"}`, `["a","words"]`, ""},
		"by keyword only":       {wordsSchema, "async def execute(*, text, unit=None): return [text, unit]", `{"text":"a"}`, `["a",null]`, ""},
		"by position only":      {wordsSchema, "def execute(text, /, unit=None): return [text, unit]", `{"text":"a","unit":"b"}`, `["a","b"]`, ""},
		"any":                   {wordsSchema, "def execute(**given): return given", `{"text":"a"}`, `{"text":"a"}`, ""},
		"decorated": {wordsSchema, `import functools
def logged(f):
    @functools.wraps(f)
    def inner(*args, **kwargs): return f(*args, **kwargs)
    return inner
@logged
def execute(text, unit='u'): return [text, unit]`, `{"text":"a"}`, `["a","u"]`, ""},
		"an object":          {wordsSchema, "class Tool:\n    def __call__(self, text): return text\nexecute = Tool()", `{"text":"a"}`, `"a"`, ""},
		"others by position": {wordsSchema, "def execute(p, pp): return [p, pp.endswith('project')]", `{"text":"a"}`, `[{"text":"a"},true]`, ""},
		"a default is kept":  {wordsSchema, "def execute(params, verbose=False): return [params, verbose]", `{"text":"a"}`, `[{"text":"a"},false]`, ""},
		"settings beside":    {wordsSchema + "CONFIG_RESOLVE = {'path': 'x.yaml'}\n", "def execute(text): return text", `{"text":"a"}`, `"a"`, ""},
		"a generator":        {wordsSchema, "def execute(params, project_path):\n    yield 1\n    yield 2", `{"text":"a"}`, `[1,2]`, ""},
		"an async generator": {wordsSchema, "async def execute(params, project_path):\n    yield 1", `{"text":"a"}`, `[1]`, ""},
		"prints its result":  {wordsSchema, "import json\ndef execute(params, project_path): print(json.dumps({'got': params['text']}))", `{"text":"a"}`, `{"got":"a"}`, ""},
		"prints text":        {wordsSchema, "def execute(text): print('it is', text)", `{"text":"a"}`, `"it is a"`, ""},
		"prints a log":       {wordsSchema, "def execute(text):\n    print('begins')\n    return text", `{"text":"a"}`, `"a"`, ""},
		"another name":       {wordsSchema, "def execute(text, words): return 1", `{"text":"a"}`, "", "words is no parameter of the tool; write execute(params, project_path)"},
		"other names":        {wordsSchema, "def execute(first, second): return 1", `{"text":"a"}`, "", "first is no parameter of the tool; write execute(params, project_path)"},
		"one too few":        {wordsSchema, "def execute(text): return text", `{"text":"a","unit":"b"}`, "", "it does not take unit"},
		"one left out":       {wordsSchema, "def execute(text, unit): return text", `{"text":"a"}`, "", "the call gives no unit, which has no default"},
		"nothing taken":      {wordsSchema, "def execute(): return 1", `{"text":"a"}`, "", "it takes none of text"},
		"none of its own":    {"", "def execute(first='x', second='y'): return 1", `{"text":"a"}`, "", "it takes none of text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put("a/t.py", c.head+c.text+"\n")
			b.put("a/warm.py", c.head+"__warm__ = True\n"+c.text+"\n")
			for id, env := range map[string]tool.Env{"a/t": {}, "a/warm": {ThreadID: thread.ID("d-1")}} {
				got, err := b.runAs(env, id, c.args)
				if c.refused != "" {
					b.refused(err, tool.CodeToolFailed, c.refused)
				} else if err != nil || got != c.want {
					t.Errorf("%s: got %s, %v (%+v)\nwant %s", id, got, err, tool.AsFault(err), c.want)
				}
			}
		})
	}
}

// What is run as a program and only defines execute is called; what does nothing at all is
// refused.
func TestPythonProgramThatDefinesAFunction(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "python3")
	const older = "__executor_id__ = 'rye/core/runtimes/python_script_runtime'\n"
	for name, c := range map[string]struct{ text, want, refused string }{
		"the older recipe":        {older + wordsSchema + "import logging, sys\nlogging.basicConfig()\nsys.path.insert(0, '.')\nasync def execute(params, project_path):\n    return [params['text'], project_path.endswith('project')]\n", `["a",true]`, ""},
		"in a block":              {"if True:\n    def execute(params, project_path): return params\n", `{"text":"a"}`, ""},
		"imported":                {"from helper import execute\n", `"a"`, ""},
		"a log by its name":       {older + "import logging\nlog = logging.getLogger(__name__)\ndef execute(params, project_path): return params['text']\n", `"a"`, ""},
		"deeply nested":           {older + "X = " + strings.Repeat("1 + ", 1200) + "0\ndef execute(params, project_path): return X\n", `1200`, ""},
		"a deep program":          {"X = " + strings.Repeat("1 + ", 1200) + "0\nprint(X)\n", `1200`, ""},
		"imported by other names": {"from helper import inner as execute\n", `"a"`, ""},
		"a program that has one":  {older + "def execute(command): raise SystemExit(3)\ndef main(): print('done')\nmain()\n", `"done"`, ""},
		"a program that calls it": {older + "import json, sys\ndef execute(p): return p['text'] * 2\nprint(execute(json.load(sys.stdin)))\n", `"aa"`, ""},
		"run":                     {"def run(params): return 1\n", "", "it defines run, which nobody calls; name it execute(params, project_path)"},
		"main":                    {"X = 1\nasync def main(params): return 1\n", "", "it defines main, which nobody calls"},
		"another":                 {"def count(text): return 1\n", "", "it defines count, which nobody calls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put("a/t.py", c.text)
			b.put("a/helper.py", "def inner(text): return text\nexecute = inner\n")
			got, err := b.run("a/t", `{"text":"a"}`)
			if c.refused != "" {
				b.refused(err, tool.CodeToolFailed, c.refused)
			} else if err != nil || got != c.want {
				t.Errorf("got %s, %v (%+v)\nwant %s", got, err, tool.AsFault(err), c.want)
			}
		})
	}
}

// Before any call, whoever signs or validates a tool is told what is wrong with its
// function.
func TestFunctionsThatDoNotFitAreNoted(t *testing.T) {
	t.Parallel()
	const program = "__executor_id__ = 'rye/core/runtimes/python/script'\n"
	for file, cases := range map[string]map[string]string{
		"a/t.py": {
			wordsSchema + "def execute(params, project_path): return 1\n":                                          "",
			wordsSchema + "def execute(\n    text: str,\n    unit: str = ('words'),\n) -> dict:\n    return 1\n":   "",
			wordsSchema + "def execute(text, **more): return 1\n":                                                  "",
			wordsSchema + "def execute(\n    text,  # what, and why\n    unit=\", (\",  # of: it\n): return 1\n":   "",
			wordsSchema + "\"\"\"As in\ndef execute(a, b): pass\n\"\"\"\ndef execute(params, project): return 1\n": "",
			wordsSchema + "def execute(request): return 1\n":                                                       "",
			"def execute(text, unit): return 1\n":                                                                  "",
			wordsSchema + "def execute(message): return 1\n":                                                       "has execute(message), whose message gets all parameters as one dict: write execute(params, project_path)",
			wordsSchema + "def execute(text, words): return 1\n":                                                   "whose words is no parameter of the tool",
			wordsSchema + "def execute(text): return 1\n":                                                          "which does not take unit",
			wordsSchema + "def execute(a, b): return 1\n":                                                          "whose a is no parameter of the tool",
			wordsSchema + "def execute(): return 1\n":                                                              "takes none of the tool's parameters",
			program + wordsSchema + "def execute(a, b): return 1\n":                                                "whose a is no parameter of the tool",
			program + wordsSchema + "def execute(a, b): return 1\nif __name__ == '__main__': pass\n":               "",
			"def run(params): return 1\n":                                                                          "defines run, which nobody calls",
			"def main(): print(1)\nmain()\n":                                                                       "",
		},
	} {
		for text, note := range cases {
			b := newBench(t)
			b.put(file, text)
			found, err := b.find("a/t")
			if err != nil || (note == "") != (len(found.Notes) == 0) || note != "" && !strings.Contains(found.Notes[0], note) {
				t.Errorf("%q: %v, %v; want %q", text, found, err, note)
			}
		}
	}
}

// A program that prints nothing has an empty result, of which its caller is told; one
// whose function nobody calls has failed.
func TestProgramsThatPrintNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a/t.sh", "true\n")
	b.put("a/says.sh", "echo null\n")
	for id, warned := range map[string]bool{"a/t": true, "a/says": false} {
		found, err := b.find(id)
		if err != nil {
			t.Fatal(err)
		}
		var plan *chain.Plan
		result, err := b.Run(t.Context(), found, executor.Call{Env: tool.Env{Project: b.project}, Args: json.RawMessage(`{}`), Planned: func(p *chain.Plan) { plan = p }})
		if err != nil || result != nil || strings.Contains(strings.Join(plan.Warnings, "; "), id+" printed nothing") != warned {
			t.Errorf("%s: got %v, %v, warnings %q", id, result, err, plan.Warnings)
		}
	}
}

// A file in JavaScript that only exports a function has that called, with all parameters as
// one object or by their names; a program stays one.
func TestNodeFunctions(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "node")
	for name, c := range map[string]struct{ file, text, want, refused string }{
		"a module":             {"a/t.mjs", "export async function execute(params, projectPath) { return [params, projectPath.endsWith('project')] }\n", `[{"text":"a","unit":"b"},true]`, ""},
		"a constant":           {"a/t.mjs", "import fs from 'fs';\nexport const run = async (p) => p.text;\n", `"a"`, ""},
		"the default":          {"a/t.mjs", "export default async function ({ text, unit = 'c' }) { return text + unit }\n", `"ab"`, ""},
		"an arrow":             {"a/t.mjs", "export default async p => p.text\n", `"a"`, ""},
		"a list of names":      {"a/t.mjs", "async function main(o) { return o }\nexport { main };\n", `{"text":"a","unit":"b"}`, ""},
		"detected":             {"a/t.js", "export async function execute(params) { return params.text }\n", `"a"`, ""},
		"exports":              {"a/t.js", "exports.execute = (p) => p.text\n", `"a"`, ""},
		"module.exports":       {"a/t.js", "const fs = require('fs')\nmodule.exports = async function execute(params) { return params.text }\n", `"a"`, ""},
		"an object":            {"a/t.cjs", "module.exports = { greeting: 'hi ', async execute(params) { return this.greeting + params.text } }\n", `"hi a"`, ""},
		"an object by default": {"a/t.mjs", "export default {\n  name: 'a',\n  async execute(params) { return this.name + params.unit },\n};\n", `"ab"`, ""},
		"by names":             {"a/t.mjs", "export function execute(unit, projectPath, /* of it */ text = 'x') { return [unit, projectPath.endsWith('project'), text] }\n", `["b",true,"a"]`, ""},
		"one of their names":   {"a/t.mjs", "export function execute(text) { return text }\n", "", "execute(text) cannot be called: it does not take unit"},
		"a list by default":    {"a/t.mjs", "export function execute(text, tags = ['(', 1], unit = 'c') { return [text, tags, unit] }\n", `["a",["(",1],"b"]`, ""},
		"a comma by default":   {"a/t.mjs", "const f = () => 1\nexport const run = async (text = f(1, 2), sep = \", \", /* of, (it */ unit) => text + sep + unit\n", `"a, b"`, ""},
		"all and one":          {"a/t.mjs", "export function execute(params, unit) { return [params.text, unit] }\n", `["a","b"]`, ""},
		"one and the others":   {"a/t.mjs", "export function execute(text, { unit } = {}) { return text + unit }\n", `"ab"`, ""},
		"compiled":             {"a/t.js", "\"use strict\";\nObject.defineProperty(exports, \"__esModule\", { value: true });\nexports.execute = execute;\nfunction execute(p) { return p.text; }\n", `"a"`, ""},
		"told of in a comment": {"a/t.mjs", "/*\nif it is asked:\n*/\n// it is not for stdin\nexport function execute(p) { return p.text }\n", `"a"`, ""},
		"a program that ends":  {"a/t.mjs", "export async function main() { console.log('once') }\nprocess.exitCode = await main()\n", `"once"`, ""},
		"a path for comments":  {"a/t.mjs", "export function execute(p) { return ['a/*', p.text, `/*`] }\nconsole.log(1) // */\n", `1`, ""},
		"too few names":        {"a/t.mjs", "export function execute(text, project) { return text }\n", "", "it does not take unit; write execute(params, projectPath)"},
		"a log":                {"a/t.mjs", "export function execute(p) {\n  console.log('begins')\n  return p.text\n}\n", `"a"`, ""},
		"prints its result":    {"a/t.mjs", "export function execute(p) {\n  console.log(JSON.stringify({ got: p.text }))\n}\n", `{"got":"a"}`, ""},
		"nothing":              {"a/t.mjs", "export function execute(p) { setInterval(() => {}, 1000) }\n", `{}`, ""},
		"a large number":       {"a/t.mjs", "export function execute(p) { return { n: 12345678901234567890n, at: new Date(0) } }\n", `{"at":"1970-01-01T00:00:00.000Z","n":"12345678901234567890"}`, ""},
		"fails":                {"a/t.mjs", "export function execute(p) { throw new Error('no luck') }\n", "", "a/t ended with exit code 1: Error: no luck"},
		"fails in its words":   {"a/t.mjs", "class NotFound extends Error { name = 'NotFound' }\nexport function execute(p) { throw new NotFound('x') }\n", "", "code 1: NotFound: x"},
		"fails with a text":    {"a/t.mjs", "export function execute(p) { throw 'no luck' }\n", "", "code 1: no luck"},
		"fails below an error": {"a/t.mjs", "export function execute(p) { throw new Error('one\\nError: two') }\n", "", "code 1: Error: one"},
		"a program":            {"a/t.mjs", "export function execute(p) { return 1 }\nconsole.log(execute({}))\n", `1`, ""},
		"a program that reads": {"a/t.cjs", "const p = JSON.parse(require('fs').readFileSync(0))\nfunction run(p) { return p.text }\nmodule.exports = { run }\nconsole.log(run(p))\n", `"a"`, ""},
		"a guarded program":    {"a/t.cjs", "function main() { console.log('main') }\nmodule.exports = { main }\nif (require.main === module) main()\n", `"main"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put(c.file, c.text)
			got, err := b.run("a/t", `{"text":"a","unit":"b"}`)
			if c.refused != "" {
				b.refused(err, tool.CodeToolFailed, c.refused)
			} else if err != nil || got != c.want {
				t.Errorf("got %s, %v (%+v)\nwant %s", got, err, tool.AsFault(err), c.want)
			}
		})
	}
}

// A function in JavaScript whose parameters have the names that the tool declares gets them by
// their names, whichever of them the call gives.
func TestNodeFunctionsOfDeclaredNames(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "node")
	b := newBench(t)
	b.put("a/t.mjs", "const CONFIG_SCHEMA = { type: 'object', properties: { limit: { type: 'integer' }, unit: { type: 'string' } } }\n"+
		"export function execute(limit = 5, unit) { return [limit, unit ?? 'none'] }\n")
	for params, want := range map[string]string{`{}`: `[5,"none"]`, `{"unit":"b"}`: `[5,"b"]`, `{"limit":7,"unit":"b"}`: `[7,"b"]`} {
		if got, err := b.run("a/t", params); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", params, got, err, want)
		}
	}
}

// A file in JavaScript whose function nobody calls, and that prints nothing, has failed and is
// noted; what prints, or has no function, is not.
func TestScriptsWhoseFunctionNobodyCalls(t *testing.T) {
	t.Parallel()
	for text, noted := range map[string]bool{
		"const settings = require('settings')\nsettings.load()\nmodule.exports = async function execute(params) { return 1 }\n": true,
		"export function execute(p) { return p }\nexecute(JSON.parse(readFileSync('/dev/stdin')))\n":                            true,
		"export function execute(p) { return p }\nconsole.log(execute({}))\n":                                                   false,
		"export function execute(p) { return p }\n":                                                                             false,
		"settings.load()\n": false,
	} {
		b := newBench(t)
		b.put("a/t.mjs", text)
		found, err := b.find("a/t")
		if err != nil || strings.Contains(strings.Join(found.Notes, "\n"), "a/t exports a function, which nobody calls") != noted {
			t.Errorf("%q: %v, %v", text, found, err)
		}
	}
	needs(t, "node")
	b := newBench(t)
	b.put("a/t.cjs", "process.on('warning', () => {})\nmodule.exports = async function execute(params) { return params }\n")
	_, err := b.run("a/t", `{}`)
	b.refused(err, tool.CodeToolFailed, "a/t ended without a result: it exports a function, which nobody calls")
}

// A runtime of somebody's own runs what it runs, and is not second-guessed.
func TestFunctionsOfAnotherRuntime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("my/node.yaml", "tool_type: runtime\nexecutor_id: rye/core/primitives/subprocess\nconfig: {command: /bin/echo, args: ['{tool_path}']}\n")
	b.put("a/t.js", "const __executor_id__ = 'my/node'\nmodule.exports = async function execute(params) { return params }\n")
	found, err := b.find("a/t")
	if err != nil || len(found.Notes) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	if got, err := b.run("a/t", `{}`); err != nil || !strings.HasSuffix(got, `/a/t.js"`) {
		t.Errorf("%s, %v", got, err)
	}
}

// A command that reaches no network and fails as one does is told what to declare, cold
// and warm, in the words of its language.
func TestFailuresWithoutNetwork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	offline := true
	b.primitive.Confine = func(_ context.Context, p *chain.Plan, _ *process.Command) error {
		p.Offline = offline
		return nil
	}
	const resolver = "<urlopen error [Errno -3] Temporary failure in name resolution>"
	b.put("a/curl.sh", "echo 'curl: (6) Could not resolve host: example.com' >&2\nexit 6\n")
	b.put("a/says.sh", `echo '{"success": false, "error": "`+resolver+`"}'`+"\n")
	b.put("a/other.sh", "echo 'no such file' >&2\nexit 1\n")
	b.put("a/yaml.yaml", "executor_id: rye/core/runtimes/bash/bash\nconfig: {command: 'echo network is unreachable; exit 1'}\n")
	b.put("a/build.sh", "echo 'error: Failed to resolve import \"./x\"' >&2\nexit 1\n")
	// The names of errors that a file or module is missing have ENOTFOUND within them.
	b.put("a/module.sh", "echo \"ModuleNotFoundError: No module named 'requests'\" >&2\nexit 1\n")
	b.put("a/file.sh", "echo 'FileNotFoundError: notes.txt' >&2\nexit 1\n")
	b.put("a/node.sh", "echo 'Error: getaddrinfo ENOTFOUND example.com' >&2\nexit 1\n")
	b.put("a/code.sh", "echo '{\"success\": false, \"error\": \"FetchError: ENOTFOUND\"}'\n")
	cases := map[string]string{"a/module": "", "a/file": "", "a/node": "declares", "a/code": "declares", "a/build": "", "a/curl": "declares `# @network true`", "a/says": "declares `# @network true`", "a/other": "", "a/yaml": "declares `network: true`"}
	if _, err := exec.LookPath("python3"); err == nil {
		b.put("a/warm.py", "__warm__ = True\ndef execute(params, project_path): raise OSError('"+resolver+"')\n")
		cases["a/warm"] = "declares `__network__ = True`"
	}
	for id, hint := range cases {
		for _, call := range []string{"first", "second"} {
			_, err := b.runAs(tool.Env{ThreadID: "d-1"}, id, `{}`)
			if f := tool.AsFault(err); f == nil || f.Code != tool.CodeToolFailed || !strings.Contains(f.Hint, hint) || (hint == "") != (f.Hint == "") || (hint == "") != (f.Try == "") {
				t.Errorf("%s, %s call: got %+v", id, call, f)
			}
		}
	}
	offline = false
	_, err := b.run("a/curl", `{}`)
	if f := tool.AsFault(err); f == nil || f.Hint != "" {
		t.Errorf("with a network: %+v", f)
	}
}
