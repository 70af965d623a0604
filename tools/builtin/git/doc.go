// Package git is the tools rye/git/status, diff, log, show and blame. They only read.
//
// A repository can be a stranger's, and git runs what a repository's configuration
// says: hooks, monitors, filters, converters, pagers, helpers. So git is not shown
// that configuration. Each call makes an empty git folder of its own, in which the
// configuration is ours, and the refs, objects and index of the repository are links
// to those of the repository. What is not there cannot run.
package git

import "github.com/rye-mcp/rye-mcp/tools/tool"

// Deps is what the tools need.
type Deps struct {
	Environ []string // of this process
	// Program is git; empty: the one of PATH.
	Program string
}

// Tools returns the tools of the package.
func Tools(deps Deps) []tool.Tool {
	g := &reader{deps: deps}
	return []tool.Tool{statusTool(g), diffTool(g), logTool(g), showTool(g), blameTool(g)}
}

// reader reads repositories.
type reader struct{ deps Deps }
