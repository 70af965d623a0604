// Package confine bounds what the command of a tool can reach, where Linux lets it: it
// writes only where it is told to, sees no keys and no state of rye-mcp, and has no
// network but what is declared.
//
// Three things of the kernel do that. A mount namespace puts empty folders in the place
// of what is hidden and makes what is protected read-only; a network namespace has no
// way out; Landlock bounds writing, and signals to processes outside. The first two
// need user namespaces, which some systems and most containers refuse: [Probe] tells
// what there is. Package inside does its work in the new process, before it becomes
// the command.
package confine
