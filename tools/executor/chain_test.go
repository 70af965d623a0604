package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// awk is a runtime that nobody has thought of: YAML, and no line of Go.
const awk = `tool_type: runtime
executor_id: rye/core/primitives/subprocess
env_config: {interpreter: {type: system_binary, binary: awk, var: AWK}}
config: {command: "${AWK}", args: ["-f", "{tool_dir}/{program}", "-v", "times={times}", "-v", "limit={timeout}"], input_data: "{text}", timeout: 20}
`

func TestNewRuntimeIsYAML(t *testing.T) {
	t.Parallel()
	needs(t, "awk")
	b := newBench(t)
	b.put("user/lang/awk.yaml", awk)
	b.put("a/count.yaml", "executor_id: lang/awk\nconfig: {program: count.awk}\nparameters: [{name: text, type: string}, {name: times, type: integer, default: 3}]\n")
	if err := os.WriteFile(filepath.Join(b.project, ".ai", "tools", "a", "count.awk"), []byte("{ n += NF } END { print n * times + limit }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := b.run("a/count", `{"text":"one two\nthree"}`); err != nil || got != "29" {
		t.Errorf("got %s, %v", got, err)
	}
}

// A runtime may stand on another one, and say more than that.
func TestChainOfThree(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "python3")
	b := newBench(t)
	b.put("lang/mine.yaml", "tool_type: runtime\nexecutor_id: rye/core/runtimes/python/function\nenv_config: {env: {MINE: \"${LEVEL:-deep}\", SHARED: runtime}}\nconfig: {timeout: 7}\n")
	b.put("a/t.py", "__executor_id__ = 'lang/mine'\nENV_CONFIG = {'env': {'SHARED': 'tool'}}\nimport os\ndef execute(params, project_path): return [os.environ['MINE'], os.environ['SHARED']]\n")
	if got, err := b.run("a/t", `{}`); err != nil || got != `["deep","tool"]` {
		t.Errorf("got %s, %v", got, err)
	}
	found, err := b.find("a/t")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, l := range found.Chain {
		ids = append(ids, string(l.Space)+" "+l.ItemID)
	}
	want := []string{"project a/t", "project lang/mine", "system rye/core/runtimes/python/function", "system rye/core/primitives/subprocess"}
	if !slices.Equal(ids, want) {
		t.Errorf("chain %v", ids)
	}
	plan, err := b.Plan(t.Context(), found, executor.Call{Env: tool.Env{Project: b.project}})
	if err != nil || plan.Timeout.Seconds() != 7 {
		t.Fatalf("%+v, %v", plan, err)
	}
	raw, err := json.Marshal(plan.Steps)
	if err != nil || strings.Contains(string(raw), "deep") || !slices.Equal(plan.Steps[1].Environment, []string{"MINE", "SHARED"}) ||
		plan.Steps[0].Verified != trust.Genuine || plan.Steps[2].Verified != trust.Shipped || plan.Steps[2].Interpreter == "" || plan.Steps[2].Anchor == "" {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestChainsThatAreRefused(t *testing.T) {
	t.Parallel()
	link := func(to string) string { return "tool_type: runtime\nexecutor_id: " + to + "\n" }
	t.Run("too long", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		for i := range 9 {
			b.put(fmt.Sprintf("r/r%d.yaml", i), link(fmt.Sprintf("r/r%d", i+1)))
		}
		b.put("r/r9.yaml", link(chain.Subprocess))
		b.put("a/eleven.yaml", "executor_id: r/r1\n") // with r1 to r9 and the primitive
		b.put("a/ten.yaml", "executor_id: r/r2\nconfig: {command: sh, args: ['-c', 'echo 1']}\n")
		_, err := b.run("a/eleven", `{}`)
		b.refused(err, tool.CodeInvalidItem, "longer than 10")
		if got, err := b.run("a/ten", `{}`); err != nil || got != "1" {
			t.Errorf("ten: %s, %v", got, err)
		}
	})
	for name, c := range map[string]struct {
		files map[string]string
		code  tool.Code
		part  string
	}{
		"a circle":                     {map[string]string{"a/t.yaml": link("r/a")[19:], "r/a.yaml": link("r/b"), "r/b.yaml": link("r/a")}, tool.CodeInvalidItem, "a/t → r/a → r/b → r/a"},
		"itself":                       {map[string]string{"a/t.yaml": "executor_id: a/t\n"}, tool.CodeInvalidItem, "circle"},
		"an executor that is not":      {map[string]string{"a/t.yaml": "executor_id: r/none\n"}, tool.CodeUnsupported, "r/none, which is not in the project, user or system space"},
		"none at all":                  {map[string]string{"a/t.yaml": "description: x\n"}, tool.CodeUnsupported, "names no executor_id"},
		"an end that is no primitive":  {map[string]string{"a/t.yaml": "executor_id: r/end\n", "r/end.yaml": "tool_type: runtime\n"}, tool.CodeUnsupported, "r/end names no executor_id"},
		"a claim to be a primitive":    {map[string]string{"a/t.yaml": "executor_id: r/own\n", "r/own.yaml": "tool_type: primitive\n"}, tool.CodeUnsupported, "says that it is a primitive"},
		"a runtime called as a tool":   {map[string]string{"a/t.yaml": link(chain.Subprocess)}, tool.CodeUnsupported, "is a runtime"},
		"a server called as a tool":    {map[string]string{"a/t.yaml": "tool_type: mcp_server\nconfig: {url: x}\n"}, tool.CodeUnsupported, "is an MCP server"},
		"a config that is no mapping":  {map[string]string{"a/t.yaml": "executor_id: subprocess\nconfig: [1]\n"}, tool.CodeInvalidItem, "config is no mapping"},
		"an anchor that is no mapping": {map[string]string{"a/t.yaml": "executor_id: subprocess\nanchor: here\n"}, tool.CodeInvalidItem, "anchor"},
		"an unknown interpreter type":  {map[string]string{"a/t.yaml": "executor_id: subprocess\nenv_config: {interpreter: {type: magic}}\nconfig: {command: sh}\n"}, tool.CodeInvalidItem, "magic"},
		"a program that is missing":    {map[string]string{"a/t.yaml": "executor_id: subprocess\nenv_config: {interpreter: {type: system_binary, binary: no-such-program, install: the thing}}\nconfig: {command: sh}\n"}, tool.CodeUnsupported, "needs the thing, which is not on this machine"},
		"a command that is missing":    {map[string]string{"a/t.yaml": "executor_id: subprocess\nconfig: {command: no-such-program}\n"}, tool.CodeUnsupported, "no-such-program, which is not in the PATH"},
		"no command":                   {map[string]string{"a/t.yaml": "executor_id: subprocess\n"}, tool.CodeInvalidItem, "config.command"},
		"a time of no length":          {map[string]string{"a/t.yaml": "executor_id: subprocess\nconfig: {command: sh, timeout: -1}\n"}, tool.CodeInvalidItem, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for file, text := range c.files {
				b.put(file, text)
			}
			_, err := b.run("a/t", `{}`)
			f := b.fault(err, c.code, c.part)
			if name == "a program that is missing" && (f.Try == "" || f.Hint == "") {
				t.Errorf("it says nothing of what to install: %+v", f)
			}
		})
	}
}

// TestAttackRuntimeOfAProject: a project has a runtime of the id that the user's own tool names, signed by a key that the user trusts. The user's tool does not see it, and runs as it does everywhere.
func TestAttackRuntimeOfAProject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("user/lang/r.yaml", "tool_type: runtime\nexecutor_id: subprocess\nconfig: {command: sh, args: ['-c', 'echo user']}\n")
	b.put("lang/r.yaml", "tool_type: runtime\nexecutor_id: subprocess\nconfig: {command: sh, args: ['-c', 'echo project']}\n")
	b.put("user/a/mine.yaml", "executor_id: lang/r\n")
	b.put("user/a/needs.yaml", "executor_id: lang/only\n")
	b.put("lang/only.yaml", "tool_type: runtime\nexecutor_id: subprocess\n")
	b.put("a/theirs.yaml", "executor_id: lang/r\n")
	b.put("rye/core/primitives/subprocess.yaml", "tool_type: primitive\nconfig: {command: sh, args: ['-c', 'echo stolen']}\n")
	for id, want := range map[string]string{"a/mine": `"user"`, "a/theirs": `"project"`} {
		if got, err := b.run(id, `{}`); err != nil || got != want {
			t.Errorf("%s: %s, %v", id, got, err)
		}
	}
	_, err := b.run("a/needs", `{}`)
	b.refused(err, tool.CodeUnsupported, "a tool of the user does not depend on a project")
}

// TestAttackElementOfAChain: one file of a chain is changed after it was signed, between two calls of the same thread. The next call refuses it, whichever file it is.
func TestAttackElementOfAChain(t *testing.T) {
	t.Parallel()
	for _, changed := range []string{"a/t.yaml", "lang/r.yaml"} {
		t.Run(changed, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put("lang/r.yaml", "tool_type: runtime\nexecutor_id: subprocess\nconfig: {command: sh, args: ['-c', 'echo 1']}\n")
			b.put("a/t.yaml", "executor_id: lang/r\n")
			if got, err := b.run("a/t", `{}`); err != nil || got != "1" {
				t.Fatalf("%s, %v", got, err)
			}
			path := filepath.Join(b.project, ".ai", "tools", filepath.FromSlash(changed))
			content, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, append(content, "# more\n"...), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.run("a/t", `{}`); !errors.Is(err, sign.ErrBadSignature) {
				t.Errorf("got %v", err)
			}
			b.mode = trust.Warn
			found, err := b.find("a/t")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := b.run("a/t", `{}`); err != nil || got != "1" || len(found.Warnings) != len(changed)-len("a/t.yaml") && len(found.Warnings) != 1 {
				t.Errorf("warned: %s, %v, %q", got, err, found.Warnings)
			}
		})
	}
}

// TestAttackFilesBesideATool: a file that a signed tool could load was not signed, was changed, is compiled, or lies behind a link. None of it is loaded, and the tool runs where it does not need it.
func TestAttackFilesBesideATool(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "python3")
	const loads = "def execute(params, project_path):\n    import helper\n    return helper.X\n"
	put := func(b *bench, name, text string) {
		path := filepath.Join(b.project, ".ai", "tools", "a", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	evil := "raise SystemExit('evil')\nX = 'evil'\n"
	for name, c := range map[string]struct {
		tool  string
		plant func(*bench)
		want  string // empty: refused with reason
		part  string
	}{
		"unsigned":           {loads, func(b *bench) { put(b, "helper.py", evil) }, "", "no trusted key has signed it"},
		"unsigned, not used": {"def execute(params, project_path): return 1\n", func(b *bench) { put(b, "helper.py", evil) }, "1", ""},
		"a name of the standard library": {"import json, base64\ndef execute(params, project_path): return json.loads('1')\n", func(b *bench) {
			put(b, "json.py", evil)
			put(b, "base64.py", evil)
		}, "1", ""},
		"compiled beside the source": {loads, func(b *bench) {
			b.put("a/helper.py", "X = 1\n")
			put(b, "helper.pyc", evil)
			put(b, "helper.so", evil)
			put(b, "helper.abi3.so", evil)
		}, "1", ""},
		"a pipe": {loads, func(b *bench) {
			if err := syscall.Mkfifo(filepath.Join(b.project, ".ai", "tools", "a", "helper.py"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "", "no trusted key has signed it"},
		"compiled alone": {loads, func(b *bench) { put(b, "helper.so", evil) }, "", "No module named"},
		"the folder of the process": {"import colorsys\ndef execute(params, project_path): return 1\n", func(b *bench) {
			if err := os.WriteFile(filepath.Join(b.project, "colorsys.py"), []byte(evil), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "1", ""},
		"by its path": {"import importlib.util, os\ndef execute(params, project_path):\n    s = importlib.util.spec_from_file_location('m', os.path.join(os.path.dirname(__file__), 'helper.py'))\n    m = importlib.util.module_from_spec(s)\n    s.loader.exec_module(m)\n    return m.X\n",
			func(b *bench) { put(b, "helper.py", evil) }, "", "no trusted key has signed it"},
		"behind a link": {"def execute(params, project_path):\n    import sub.helper\n    return sub.helper.X\n", func(b *bench) {
			outside := filepath.Join(filepath.Dir(b.project), "outside")
			if err := errors.Join(os.MkdirAll(outside, 0o700), os.WriteFile(filepath.Join(outside, "helper.py"), []byte(evil), 0o600),
				os.Symlink(outside, filepath.Join(b.project, ".ai", "tools", "a", "sub"))); err != nil {
				t.Fatal(err)
			}
		}, "", "No module named"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put("a/t.py", c.tool)
			c.plant(b)
			got, err := b.run("a/t", `{}`)
			if c.want == "" {
				b.refused(err, tool.CodeToolFailed, c.part)
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %s, %v (%+v)", got, err, tool.AsFault(err))
			}
		})
	}
}

// TestAttackLibraryOfARuntime: a tool has changed the files that a runtime of the program loads from the user's cache. They are put back before the next tool runs.
func TestAttackLibraryOfARuntime(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "python3")
	b := newBench(t)
	b.put("a/t.py", "def execute(params, project_path): return 1\n")
	if got, err := b.run("a/t", `{}`); err != nil || got != "1" {
		t.Fatalf("%s, %v", got, err)
	}
	files, err := filepath.Glob(filepath.Join(b.user, "cache", "*", "rye", "core", "runtimes", "python", "lib", "*.py"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("print('\"evil\"')\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := b.run("a/t", `{}`); err != nil || got != "1" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestAttackProgramsOfAStrangersProject: a project that nobody has accepted brings a .venv, node_modules and a .env. Its interpreter does not run, its variables are not set, and a tool that would load its modules is refused.
func TestAttackProgramsOfAStrangersProject(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "python3", "node")
	b := newBench(t)
	b.accepted = false
	for name, text := range map[string]string{
		".venv/bin/python3": "#!/bin/sh\necho '\"evil\"'\n", "node_modules/.bin/tsx": "#!/bin/sh\necho '\"evil\"'\n", ".env": "LEVEL=evil\n",
	} {
		path := filepath.Join(b.project, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil { //nolint:gosec // programs
			t.Fatal(err)
		}
	}
	b.put("user/a/py.py", "ENV_CONFIG = {'env': {'LEVEL': '${LEVEL:-none}'}}\nimport os\ndef execute(params, project_path): return os.environ['LEVEL']\n")
	b.put("user/a/js.mjs", "console.log(1)\n")
	b.put("b/js.mjs", "console.log(1)\n")
	for id, want := range map[string]string{"a/py": `"none"`, "a/js": "1"} {
		if got, err := b.run(id, `{}`); err != nil || got != want {
			t.Errorf("%s: %s, %v", id, got, err)
		}
	}
	_, err := b.run("b/js", `{}`)
	if f := b.fault(err, tool.CodeIntegrity, "node_modules"); strings.Contains(f.Hint, "trust") || !strings.Contains(f.Try, "trust") {
		t.Errorf("the model is told what only a person decides: %+v", f)
	}
	b.accepted = true
	for id, want := range map[string]string{"a/py": `"evil"`, "b/js": `"evil"`} {
		if got, err := b.run(id, `{}`); err != nil || got != want {
			t.Errorf("accepted, %s: %s, %v", id, got, err)
		}
	}
}

func TestPlanWarnsOfWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	b := newBench(t)
	b.accepted = false
	path := filepath.Join(b.project, ".venv", "bin", "python3")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700)); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	b.put("a/t.py", "CONFIG_SCHEMA = make()\ndef execute(params, project_path): return 1\n")
	found, err := b.find("a/t")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := b.Plan(t.Context(), found, executor.Call{Env: tool.Env{Project: b.project}, Args: json.RawMessage(`{"any":1}`)})
	if err != nil || len(plan.Warnings) != 1 || !strings.Contains(plan.Warnings[0], ".venv/bin/python3 is left out") {
		t.Errorf("%+v, %v", plan, err)
	}
	if len(found.Warnings) != 1 || !strings.Contains(found.Warnings[0], "not static") {
		t.Errorf("%q", found.Warnings)
	}
}

// A person is told of the files that are used in spite of their signature, and not once
// for each file.
func TestPlanWarnsOfFilesOnce(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "python3")
	b := newBench(t)
	b.mode = trust.Warn
	b.put("a/t.py", "from near3 import N\ndef execute(params, project_path): return N\n")
	for i := range 5 {
		b.write(fmt.Sprintf("a/near%d.py", i), fmt.Sprintf("N = %d\n", i), false)
	}
	found, err := b.find("a/t")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := b.Plan(t.Context(), found, executor.Call{Env: tool.Env{Project: b.project}})
	if err != nil || len(plan.Warnings) != 2 || !strings.Contains(plan.Warnings[0], "a/near0") || !strings.HasPrefix(plan.Warnings[1], "4 more files") {
		t.Errorf("%q, %v", plan.Warnings, err)
	}
	if got, err := b.run("a/t", `{}`); err != nil || got != "3" {
		t.Errorf("%s, %v", got, err)
	}
}

// Settings that a tool asks for come from all spaces, a stranger's project apart.
func TestConfigResolve(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "python3")
	b := newBench(t)
	for dir, text := range map[string]string{b.user: "a: {x: 1, y: 1}\nlist: [1]\n", b.project: "a: {y: 2}\nlist: [2]\n"} {
		path := filepath.Join(dir, ".ai", "config", "mail", "mail.yaml")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for mode, want := range map[string]string{"deep_merge": `{"a":{"x":1,"y":1},"list":[1]}`, "first_match": `{"a":{"x":1,"y":1},"list":[1]}`} {
		b.put("a/"+mode+".py", "CONFIG_RESOLVE = {'path': 'mail/mail.yaml', 'mode': '"+mode+"'}\nCONFIG_SCHEMA = {'type': 'object', 'properties': {}}\ndef execute(params, project_path): return params['resolved_config']\n")
		if got, err := b.run("a/"+mode, `{}`); err != nil || got != want {
			t.Errorf("%s: %s, %v", mode, got, err)
		}
		_, err := b.run("a/"+mode, `{"resolved_config":{"a":"the caller's"}}`)
		b.refused(err, tool.CodeBadArguments, "resolved_config")
	}
	for _, path := range []string{"../keys/signing/private_key.pem", "/etc/passwd", ""} {
		b.put("a/out.py", "CONFIG_RESOLVE = {'path': '"+path+"'}\ndef execute(params, project_path): return params\n")
		if got, err := b.run("a/out", `{}`); err == nil {
			t.Errorf("%q gave %s", path, got)
		}
	}
}

// Parameters that nobody declared are refused, and defaults are filled in.
func TestParametersOfItems(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a/t.yaml", "executor_id: subprocess\nconfig: {command: sh, args: ['-c', 'cat']}\nparameters: [{name: n, type: integer, default: 3}]\n")
	for args, want := range map[string]string{`{}`: `{"n":3}`, `{"n":"4"}`: `{"n":4}`} {
		if got, err := b.run("a/t", args); err != nil || got != want {
			t.Errorf("%s: %s, %v", args, got, err)
		}
	}
	_, err := b.run("a/t", `{"m":1}`)
	b.refused(err, tool.CodeBadArguments, `"m"`)
	b.put("a/bomb.yaml", "executor_id: subprocess\nconfig: {command: sh, args: ['-c', 'cat']}\nconfig_schema:\n  type: object\n  properties: {a: {$ref: '#/$defs/d0'}}\n  $defs:\n"+bombLevels(40))
	_, err = b.run("a/bomb", `{"a":1}`)
	b.refused(err, tool.CodeInvalidItem, "refers to itself so often")
}

func bombLevels(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "    d%d: {allOf: [{$ref: '#/$defs/d%d'}, {$ref: '#/$defs/d%d'}]}\n", i, i+1, i+1)
	}
	fmt.Fprintf(&text, "    d%d: {}\n", n)
	return text.String()
}

// TestAttackAskedInterpreter: a command of a thread puts an interpreter into the project that does something else when it is asked for its version, which it is before the tool runs.
// It is held to the bounds of tools, and where those cannot be set it is not asked.
func TestAttackAskedInterpreter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	asked := filepath.Join(b.user, "asked")
	path := filepath.Join(b.project, "node_modules", ".bin", "own")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("#!/bin/sh\ntouch "+asked+"\necho 22.18\n"), 0o700)); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	b.put("a/runtime.yaml", `tool_type: runtime
executor_id: rye/core/primitives/subprocess
runs: [.ts]
env_config:
  interpreter:
    {binary: own, search_paths: [node_modules/.bin], var: RYE_OWN, needs: {.ts: {binary: other, version: "22"}}}
config: {command: "${RYE_OWN}", args: ["{tool_path}"]}
`)
	b.put("a/t.ts", "const __executor_id__ = 'a/runtime'\n")
	found, err := b.find("a/t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(b.user, "cache"), 0o700); err != nil { // where it is asked
		t.Fatal(err)
	}
	bounds := errors.New("it cannot be confined")
	var held []string
	b.confine = func(_ context.Context, _ tool.Env, c *process.Command) error {
		held = append(held, c.Path)
		return bounds
	}
	b.open()
	if _, err := b.Plan(t.Context(), found, executor.Call{Env: tool.Env{Project: b.project}}); err == nil {
		t.Error("an interpreter whose version is not known was taken")
	}
	if len(held) != 1 || held[0] != path {
		t.Errorf("held to bounds: %q", held)
	}
	if _, err := os.Stat(asked); err == nil {
		t.Error("it was asked without bounds")
	}
	b.confine = func(context.Context, tool.Env, *process.Command) error { return nil }
	b.open()
	if _, err := b.Plan(t.Context(), found, executor.Call{Env: tool.Env{Project: b.project}}); err != nil {
		t.Error(err)
	}
}
