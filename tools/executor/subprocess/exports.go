package subprocess

import (
	"regexp"
	"slices"
	"sync"

	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
)

// isScript reports whether a tool is a file in JavaScript or TypeScript.
func isScript(t *chain.Element) bool {
	return slices.Contains([]string{".js", ".mjs", ".cjs", ".ts"}, t.Ext)
}

// onlyExports reports whether a file in JavaScript or TypeScript exports a function and is no
// program: it reads nothing of what a program gets, and does nothing by itself.
func onlyExports(t *chain.Element) bool {
	if !isScript(t) {
		return false
	}
	src := uncommented(t.Content)
	return exportsFunction().Match(src) && !readsInput().Match(src) && !acts(src)
}

// acts reports whether a file has a statement at its top that does something, and not only
// binds names.
func acts(src []byte) bool {
	for _, m := range topStatement().FindAllSubmatch(src, -1) {
		switch called := string(m[1]); called {
		case "require", "import", "function", "Object.defineProperty", "Object.freeze", "Object.assign": // which load, or bind
		default:
			return true
		}
	}
	return false
}

// uncommented is a file in JavaScript without its comments.
func uncommented(src []byte) []byte {
	return comment().ReplaceAllFunc(src, func(part []byte) []byte {
		if part[0] == '/' {
			return nil
		}
		return part
	})
}

var (
	exportsFunction = sync.OnceValue(func() *regexp.Regexp {
		const names = `(execute|run|main|handler)\b`
		return regexp.MustCompile(`(?m)^\s*export\s+(async\s+)?(function\s+|const\s+|let\s+|var\s+)` + names +
			`|^\s*export\s+default\s+(async\b|function\b|\(|\w+\s*=>|` + names + `|\{[^}]*\b` + names + `)` +
			`|^\s*export\s*\{[^}]*\b` + names + `|\bexports\.(` + names + `|default\b)\s*=` +
			`|^\s*module\.exports\s*=\s*(async\b|function\b|\([^)]*\)\s*=>|\w+\s*=>|` + names + `|\{[^}]*\b` + names + `)`)
	})
	readsInput = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\bstdin\b|readFileSync\(\s*0\b|\brequire\.main\b|\bimport\.meta\.main\b|\bprocess\.argv\b|\bparseArgs\b`)
	})
	// topStatement matches calls, with what is called, control flow and exit codes that are not
	// indented.
	topStatement = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^(?:([A-Za-z_$][\w$.]*)\s*\(|;?\(|process\.exitCode\b|(?:await|for|while|if|try|switch|do|throw|void|new)\b)`)
	})
	// answers matches what prints a result.
	answers = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)console\.(log|info|table|dir)\b|\bstdout\b|writeSync\(\s*1\b|writeFileSync\(\s*1\b|/dev/stdout|stdio['"]?\s*:|^\s*import\s*["']|^\s*require\(`)
	})
	// comment matches comments, and texts so that none begins within one.
	comment = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|` + "`(?:\\\\.|[^`\\\\])*`" + `|/\*.*?\*/|//[^\n]*`)
	})
)
