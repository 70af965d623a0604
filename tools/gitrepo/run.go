package gitrepo

import (
	"cmp"

	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Program is the file of git: the given one, or that of the PATH of an environment, which is
// one without the folders of the project ([process.Outside]).
func Program(given string, environ []string) (string, error) {
	path, err := process.Find(environ, cmp.Or(given, "git"))
	if err != nil {
		return "", tool.Faultf(tool.CodeUnsupported, "git is not installed, or not in the PATH of rye-mcp").
			WithHint("Tell the person. Files can be read with rye/file-system/read.").WithTry("install git")
	}
	return path, nil
}

// Environment is that of git for a git folder and a working tree: no configuration of
// the system, of the user or of variables, no other repository, no network, nothing
// that asks.
func Environment(environ []string, dir, tree string, more ...string) []string {
	extra := []string{
		"GIT_DIR=" + dir, "GIT_WORK_TREE=" + tree, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "PAGER=cat", "GIT_EDITOR=false", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "GIT_SSH_COMMAND=false",
		"GIT_ALLOC_LIMIT=1g", "GIT_ADVICE=0", "LC_ALL=C.UTF-8", "TERM=dumb",
	}
	return process.ToolEnv(environ, append(extra, more...)...)
}
