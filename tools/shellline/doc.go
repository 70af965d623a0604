// Package shellline puts values into command lines of the shell, so that each is
// what it is and nothing else: no word more, no command, no variable. It follows
// the quotes of the text that the author of the line wrote: a value outside of
// quotes becomes one word in single quotes, and one within quotes is escaped for
// them. Where it cannot follow, as in backquotes and in arithmetic, it takes values
// that mean nothing to the shell and refuses the others.
//
// It cannot help where a line is read twice: by eval, sh -c, ssh, or an arithmetic
// comparison in [[ ]].
package shellline
