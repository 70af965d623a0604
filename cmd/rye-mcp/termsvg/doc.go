// Package termsvg records what a program writes to a terminal as a picture that moves: an
// SVG whose lines come and go at the times at which they were written. It needs no script
// and no font of its own, so that it shows wherever pictures do.
//
// A [Recorder] is the terminal. It knows what this module's programs write: text, line
// ends, the cursor up, the erasing of lines, and colours (ECMA-48, SGR). Every other
// sequence is left out, and text is escaped, so that no bytes can become markup.
package termsvg
