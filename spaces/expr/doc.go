// Package expr says what paths, conditions and templates over data mean.
//
// Data are JSON types: nil, bool, string, int, int64, float64, []any and
// map[string]any; [Plain] makes them of other Go values. All functions are pure,
// and everything that was parsed may be used from several goroutines.
//
// # Paths
//
// A path is names joined by dots: cost.turns. An element of a list is named by
// its index, from 0: items.0.id or items[0].id.
//
// # Conditions
//
// A condition is {path, op, value}, or one of {any: […]}, {all: […]} and
// {not: …} around others.
//
//	eq ne             equal, and not: 3 equals 3.0, lists and maps by content
//	gt gte lt lte     numbers, or strings by their bytes
//	in                the value is a list that holds the data, or text that does
//	contains          the data are a list, text, or a map with a key
//	regex             the data are text in which the expression (RE2) is found
//	exists            there are data, other than null; with the value false: none
//
// Comparing different types is false, and so is every comparison, ne included,
// of data that are not there. "not" around eq is true in both cases.
//
// # The short form
//
// The <when> of a hook is a condition as one line of text:
//
//	expression = term { ("or" | "||") term }
//	term       = factor { ("and" | "&&") factor }
//	factor     = comparison | ("not" | "!") factor | "(" expression ")"
//	comparison = path "exists" | path op operand
//	op         = "==" | "!=" | ">" | ">=" | "<" | "<=" | the ops above by name
//	operand    = literal | path [ "*" number ]
//	literal    = text in '' or "" | number | true | false | null | "[" literals "]"
//
// as in: cost.spend > limits.spend * 0.8 and event.name == "after_step".
// Within quotes a backslash stands before a quote or a backslash that is meant;
// before anything else it is itself, so that regular expressions stay readable.
//
// # Templates
//
// ${a.b} in text is replaced by the data at the path, ${a.b || c.d} by the first
// that are there. The first name of a path is lower case: ${HOME} and everything
// else that is no such path stays as it is. A string that is one template and
// nothing else becomes the data with their type; within longer text, data that are
// not text appear as compact JSON. Text that came in by a template is never looked
// at again.
package expr
