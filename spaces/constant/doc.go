// Package constant reads what a source file binds to names at its top level,
// without running it. Its callers ask for the few names that hold the metadata
// of a tool. It understands literals, names bound to such before, + of texts and
// lists, and spreads. Everything else makes a value unknown, with the reason.
//
// A value that is missing does less harm than one that is wrong. So a name has none
// that is bound twice, in a block, or together with others, or whose list or
// mapping a statement may change, also under another name. Calls of functions that
// change a value are not followed.
//
// The outline of a file has its bytes without what stands in texts, comments and
// functions, a statement a line (outline.go; python.go; javascript.go, with the
// tokens of tdewolff/parse). A name is looked up in it: the one place that binds
// it, and all others, which may only use it (name.go). The expression it is bound
// to is written as one of Starlark (expression.go), and the tree of Starlark's
// parser is folded into a value (fold.go). Only what is asked for is parsed.
//
// Source comes from outside: depth, length of an expression, uses of a name and
// the size of all values together are bounded.
package constant

// Constant is what a name is bound to at the end of the file.
type Constant struct {
	// Value is nil, bool, int64, float64, string, []any or map[string]any.
	// Constants share parts of it: it is for reading only.
	Value any
	Line  int // where the name comes up first, from 1
	// Reason says why the value is not known, as a phrase that follows a subject:
	// "calls build()". It is empty when Value is it.
	Reason string
}

const (
	// maxDepth bounds how deep values, and brackets in their source, are nested.
	maxDepth = 64
	// maxRead bounds the expressions that are read of a file, in bytes; those of
	// names that are used several times count each time.
	maxRead = 1 << 20
	// maxTokens bounds one expression: schemas have some hundreds.
	maxTokens = 50_000
	// maxNames bounds how many names are looked up, and maxUses the places of each.
	maxNames, maxUses = 100, 200
	// window is how many bytes around a place say how a name is used there.
	window = 400
)
