// Package claude reads the agents, commands and skills of Claude Code, and the skills
// that other programs keep in the same form, as directives. It reads bytes only: what
// such a file asks for becomes capabilities, a model and limits of ours, and what has
// no counterpart here is named and never guessed. A file is given less than it asks
// for, or is not started; it is never given more.
package claude
