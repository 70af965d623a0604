// Package constant reads what a source file binds to names at its top level,
// without running it. It understands literals, names bound to such before, +
// of texts and lists, and spreads. Whatever else decides a value makes it
// unknown, with the reason and the line; nothing is guessed. What functions do
// to a value when they are called is not followed.
//
// The splitter of a language finds the statements of a file (pysplit.go,
// jssplit.go, whose tokens are tdewolff/parse's). Assignments become names and
// expressions, other statements change what is bound (python.go, javascript.go).
// An expression becomes one of Starlark, in which numbers stand for what the
// languages write differently (expression.go). The tree of Starlark's parser is
// folded into a value (fold.go), and the scope knows which names share it
// (scope.go).
//
// Source comes from outside: depth, tokens of a statement and the size of all
// values together are bounded before the parser sees them.
package constant

// Constant is what a name is bound to at the end of the file.
type Constant struct {
	// Value is nil, bool, int64, float64, string, []any or map[string]any. Names
	// that are bound to one another share it: it is for reading only.
	Value any
	Line  int // of the statement that decides, from 1
	// Reason says why the value is not known, as a phrase that follows a subject:
	// "calls build()". It is empty when Value is it.
	Reason string
}

// Table holds the names bound at the top level of a file.
type Table map[string]Constant

const (
	// maxDepth bounds how deep values, and brackets in their source, are nested.
	maxDepth = 64
	// maxTokens bounds what is kept of one statement: schemas have some hundreds.
	maxTokens = 100_000
	// maxWeight bounds all values of a file, names used several times counted each
	// time, in elements and bytes of text: more than a file of literals can have.
	maxWeight = 4 << 20
)
