// Package parse reads item files: bytes in, the types of package item out. It
// touches no disk; the path it is given only names the file in errors and, for
// knowledge without metadata, the item.
//
// A directive is Markdown with one fenced xml block. The block is found by a
// line scan ([findBlock]), read into a small tree ([block.tree]) with the line
// of every element, and the tree is read element by element. Knowledge is
// Markdown with YAML metadata on top, or YAML. Tools are described by YAML, or
// by the leading comment of a script.
//
// Every refusal is an [*Error] that names file, line and reason.
package parse
