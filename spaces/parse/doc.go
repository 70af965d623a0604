// Package parse reads item files: bytes in, the types of package item out. It
// touches no disk; the path it is given only names the file in errors and, for
// knowledge without metadata, the item.
//
// A directive is Markdown with one fenced xml block. The block is found by a
// scan of the lines (fence.go) and read into a small tree that knows the line
// of every element (xml.go); then each element is taken over by the file named
// after it. Knowledge is
// Markdown with YAML metadata on top, or YAML. Tools are described by YAML, or
// by the leading comment of a script.
//
// Every refusal is an [*Error] that names file, line and reason.
package parse
