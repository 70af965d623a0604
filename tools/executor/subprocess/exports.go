package subprocess

import (
	"regexp"
	"slices"
	"sync"

	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
)

// onlyExports reports whether a file in JavaScript or TypeScript exports a function and is no
// program: it reads nothing of what a program gets, and does nothing by itself.
func onlyExports(t *chain.Element) bool {
	return slices.Contains([]string{".js", ".mjs", ".cjs", ".ts"}, t.Ext) &&
		exportsFunction().Match(t.Content) && !readsInput().Match(t.Content) && !acts(t.Content)
}

// acts reports whether a file has a statement at its top that does something, and not only
// binds names.
func acts(src []byte) bool {
	for _, m := range topStatement().FindAllSubmatch(src, -1) {
		switch called := string(m[1]); called {
		case "require", "import", "function": // which load, or bind
		default:
			return true
		}
	}
	return false
}

var (
	exportsFunction = sync.OnceValue(func() *regexp.Regexp {
		const names = `(execute|run|main|handler)\b`
		return regexp.MustCompile(`(?m)^\s*export\s+(async\s+)?(function\s+|const\s+|let\s+|var\s+)` + names +
			`|^\s*export\s+default\s+(async\b|function\b|\(|\w+\s*=>|` + names + `)` +
			`|^\s*export\s*\{[^}]*\b` + names + `|\bexports\.(` + names + `|default\b)\s*=` +
			`|^\s*module\.exports\s*=\s*(async\b|function\b|\([^)]*\)\s*=>|\w+\s*=>|` + names + `|\{[^}]*\b` + names + `)`)
	})
	readsInput = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\bstdin\b|readFileSync\(\s*0\b|\brequire\.main\b|\bimport\.meta\.main\b|\bprocess\.argv\b|\bparseArgs\b`)
	})
	// topStatement matches calls, with what is called, and control flow that is not indented.
	topStatement = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^(?:([A-Za-z_$][\w$.]*)\s*\(|;?\(|(?:await|for|while|if|try|switch|do|throw|void|new)\b)`)
	})
)
