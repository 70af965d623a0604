package subprocess

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
)

// misfit says why the program of a tool does not do what its author expects: nobody calls
// its function, or the function does not take what the tool declares. The text follows
// the id of the tool; empty: nothing is known against it.
func misfit(c *chain.Chain) string {
	switch t := c.Tool(); {
	case strings.HasSuffix(t.Ext, "js"), t.Ext == ".ts":
		if exportsFunction().Match(t.Content) && !answers().Match(t.Content) {
			return "exports a function, which nobody calls, and prints nothing: a program for Node reads its parameters as JSON from standard input and prints its result with console.log"
		}
	case t.Ext == ".py" && len(c.Elements) > 1 && c.Elements[1].Space == item.System:
		switch c.Elements[1].ID {
		case "rye/core/runtimes/python/function":
			return misfitFunction(c)
		case "rye/core/runtimes/python/script":
			return misfitProgram(c)
		}
	}
	return ""
}

// What a program for Node has that is written like a function, and what one that answers
// has.
var (
	exportsFunction = sync.OnceValue(func() *regexp.Regexp {
		const names = `(execute|run|main|handler)\b`
		return regexp.MustCompile(`(?m)^\s*export\s+(async\s+)?(function\s+|const\s+|let\s+|var\s+)` + names +
			`|^\s*export\s+default\s+(async\b|function\b|\(|\w+\s*=>|` + names + `)` +
			`|^\s*export\s*\{[^}]*\b` + names + `|\bexports\.(` + names + `|default\b)\s*=` +
			`|^\s*module\.exports\s*=\s*(async\b|function\b|\([^)]*\)\s*=>|\w+\s*=>|` + names + `|\{[^}]*\b` + names + `)`)
	})
	answers = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)console\.(log|info|table|dir)\b|\bstdout\b|writeSync\(\s*1\b|writeFileSync\(\s*1\b|/dev/stdout|stdio['"]?\s*:|^\s*import\s*["']|^\s*require\(`)
	})
)

// definesPython matches a function at the top of a Python file, with its parameters.
var definesPython = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?ms)^(?:async\s+)?def\s+(execute|run|main)\s*\((.*?)\)\s*(?:->[^\n]*?)?:\s`)
})

// misfitProgram is for a Python file that is run as a program: one that only defines
// execute is called by its runner.
func misfitProgram(c *chain.Chain) string {
	src := c.Tool().Content
	if bytes.Contains(src, []byte("__name__")) {
		return ""
	}
	for _, word := range []string{"print", "stdout"} {
		if bytes.Contains(src, []byte(word)) {
			return ""
		}
	}
	if bytes.Contains(src, []byte("execute")) {
		return misfitFunction(c)
	}
	for _, m := range definesPython().FindAllSubmatch(src, -1) {
		if name := string(m[1]); bytes.Count(src, m[1]) == 1 {
			return "defines " + name + ", which nobody calls, and prints nothing: name it execute(params, project_path), or call it and print what it returns"
		}
	}
	return ""
}

// misfitFunction holds the parameters of execute against the schema, as its runner does
// (rye_call.py).
func misfitFunction(c *chain.Chain) string {
	for _, m := range definesPython().FindAllSubmatch(c.Tool().Content, -1) {
		if string(m[1]) != "execute" {
			continue
		}
		why := unfit(parametersOf(string(m[2])), c.Declared())
		if why == "" {
			return ""
		}
		return fmt.Sprintf("has execute(%s), %s: write execute(params, project_path), or give it the names that CONFIG_SCHEMA declares", strings.Join(strings.Fields(string(m[2])), " "), why)
	}
	return ""
}

// parameter is one that a Python function takes.
type parameter struct {
	name     string
	optional bool
}

// parametersOf reads the parameters of a definition; * and ** keep their stars.
func parametersOf(text string) []parameter {
	var all []parameter
	depth, from := 0, 0
	for i, r := range text + "," {
		switch {
		case strings.ContainsRune("([{", r):
			depth++
		case strings.ContainsRune(")]}", r):
			depth--
		case r == ',' && depth == 0:
			one := strings.TrimSpace(text[from:i])
			from = i + 1
			name, _, optional := strings.Cut(one, "=")
			name, _, _ = strings.Cut(name, ":")
			if name = strings.TrimSpace(name); name != "" && name != "*" && name != "/" {
				all = append(all, parameter{name, optional})
			}
		}
	}
	return all
}

// unfit says why a function does not take what a tool declares.
func unfit(takes []parameter, declared []string) string {
	if len(declared) == 0 {
		return ""
	}
	names, all := map[string]bool{}, false
	byName := false
	for _, p := range takes {
		names[p.name] = true
		all = all || strings.HasPrefix(p.name, "*") || p.name == "params"
		byName = byName || slices.Contains(declared, p.name) && p.name != "params" && p.name != "project_path"
	}
	for _, p := range takes {
		known := slices.Contains(declared, p.name) || isPlace(p.name) || all && (strings.HasPrefix(p.name, "*") || p.name == "params")
		if byName && !known && !p.optional {
			return fmt.Sprintf("whose %s is no parameter of the tool", p.name)
		}
	}
	if byName && !all {
		for _, name := range declared {
			if !names[name] {
				return fmt.Sprintf("which does not take %s", name)
			}
		}
	}
	if byName || all {
		return ""
	}
	return unconventional(takes)
}

// unconventional says why a function that has no name of the tool's parameters is not
// execute(params, project_path) by other names.
func unconventional(takes []parameter) string {
	var rest []parameter
	for _, p := range takes {
		if !isPlace(p.name) {
			rest = append(rest, p)
		}
	}
	switch {
	case len(rest) == 0:
		return "which takes none of the tool's parameters"
	case isWhole(rest[0].name):
		return ""
	case rest[0].optional, len(rest) > 1:
		return fmt.Sprintf("whose %s is no parameter of the tool", rest[0].name)
	}
	return fmt.Sprintf("whose %s gets all parameters as one dict", rest[0].name)
}

// isWhole and isPlace are is_whole and is_place of rye_call.py.
func isWhole(name string) bool {
	return slices.Contains([]string{"p", "data", "payload", "options", "opts", "request", "event", "body", "call"}, name) ||
		slices.ContainsFunc([]string{"param", "arg", "input", "config"}, func(part string) bool { return strings.Contains(name, part) })
}

func isPlace(name string) bool {
	return strings.Contains(name, "project") ||
		slices.Contains([]string{"root", "root_path", "root_dir", "base_path", "base_dir", "cwd", "workspace", "working_dir", "work_dir"}, name)
}
