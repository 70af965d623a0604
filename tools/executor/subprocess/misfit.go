package subprocess

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/constant"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
)

// misfit says why a program does not do what its author expects: nobody calls its function,
// or the function does not take what the tool declares. The text follows the id of the tool;
// empty: nothing is known against it.
func misfit(c *chain.Chain) string {
	if len(c.Elements) < 2 || c.Elements[1].Space != item.System {
		return ""
	}
	switch c.Elements[1].ID {
	case "rye/core/runtimes/node/node":
		return misfitScript(c.Tool())
	case "rye/core/runtimes/python/function":
		return misfitFunction(c)
	case "rye/core/runtimes/python/script":
		return misfitProgram(c)
	}
	return ""
}

// misfitScript is for a file in JavaScript that exports a function, and is taken for a program.
func misfitScript(t *chain.Element) string {
	if !isScript(t) || onlyExports(t) || !exportsFunction().Match(uncommented(t.Content)) || answers().Match(t.Content) {
		return ""
	}
	return "exports a function, which nobody calls as the file reads its input or has a statement at its top that does something, and prints nothing: leave that to the function, or print the result with console.log"
}

// definesPython matches a function at the top of a Python file, of which bare has taken what
// is no code, with its parameters.
var definesPython = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?ms)^(?:async\s+)?def\s+(execute|run|main)\s*\((.*?)\)\s*(?:->[^\n]*?)?:\s`)
})

// bare is a Python file without comments, and with 0 for each text.
func bare(src []byte) []byte {
	return noCode().ReplaceAllFunc(src, func(part []byte) []byte {
		if part[0] == '#' {
			return nil
		}
		return []byte("0")
	})
}

var noCode = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)"""(?:\\.|[^\\])*?"""|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*`)
})

// misfitProgram is for a Python file that is run as a program: one that only defines
// execute is called by its runner.
func misfitProgram(c *chain.Chain) string {
	src := c.Tool().Content
	for _, word := range []string{"__main__", "print", "stdout"} {
		if bytes.Contains(src, []byte(word)) {
			return ""
		}
	}
	if bytes.Contains(src, []byte("execute")) {
		return misfitFunction(c)
	}
	for _, m := range definesPython().FindAllSubmatch(bare(src), -1) {
		if name := string(m[1]); bytes.Count(src, m[1]) == 1 {
			return "defines " + name + ", which nobody calls, and prints nothing: name it execute(params, project_path), or call it and print what it returns"
		}
	}
	return ""
}

// misfitFunction holds the parameters of execute against the schema, as its runner does
// (rye_call.py).
func misfitFunction(c *chain.Chain) string {
	for _, m := range definesPython().FindAllSubmatch(bare(c.Tool().Content), -1) {
		if string(m[1]) != "execute" {
			continue
		}
		takes := parametersOf(string(m[2]))
		why := unfit(takes, c.Declared())
		if why == "" {
			return ""
		}
		names := make([]string, len(takes))
		for i, p := range takes {
			names[i] = p.name
		}
		return fmt.Sprintf("has execute(%s), %s: write execute(params, project_path), or give it the names that CONFIG_SCHEMA declares", strings.Join(names, ", "), why)
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
func isWhole(name string) bool { return isNamed(name, "WHOLE") }
func isPlace(name string) bool { return isNamed(name, "PLACE") }

func isNamed(name, list string) bool {
	names := conventions()
	return slices.Contains(names[list], name) ||
		slices.ContainsFunc(names[list+"_PARTS"], func(part string) bool { return strings.Contains(name, part) })
}

// conventions are the names by which rye_call.py tells what a parameter is for.
var conventions = sync.OnceValue(func() map[string][]string {
	const runner = "tools/rye/core/runtimes/python/lib/rye_call.py"
	src, err := fs.ReadFile(system.FS(), runner)
	if err != nil {
		panic("bug; the embedded folder has no " + runner)
	}
	names := map[string][]string{}
	for list, bound := range constant.Python(string(src), "WHOLE", "WHOLE_PARTS", "PLACE", "PLACE_PARTS") {
		values, _ := bound.Value.([]any)
		for _, value := range values {
			name, _ := value.(string)
			names[list] = append(names[list], name)
		}
	}
	return names
})
