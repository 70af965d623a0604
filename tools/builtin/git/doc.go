// Package git is the tools rye/git/status, diff, log, show and blame. They only read.
// Nothing of a repository's configuration runs, see package gitrepo.
package git

import "github.com/rye-mcp/rye-mcp/tools/tool"

// Deps is what the tools need.
type Deps struct {
	Environ []string // of this process
	// Program is git; empty: the one of PATH.
	Program string
	// Scratch is the folder for git folders of our own, see [gitrepo.Temporary].
	Scratch string
}

// Tools returns the tools of the package.
func Tools(deps Deps) []tool.Tool {
	g := &reader{deps: deps}
	return []tool.Tool{statusTool(g), diffTool(g), logTool(g), showTool(g), blameTool(g)}
}

// reader reads repositories.
type reader struct{ deps Deps }
