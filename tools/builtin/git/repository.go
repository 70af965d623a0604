package git

import (
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// repository is that of a call.
type repository struct{ *gitrepo.Repository }

// find is the repository that a call works in. That of a workspace is what the thread
// was given, whatever stands in its .git.
func find(env tool.Env) (repository, error) {
	if w := env.Work; w != nil {
		prefix, err := filepath.Rel(w.Tree, w.Root)
		if err != nil {
			return repository{}, err
		}
		if prefix == "." {
			prefix = ""
		}
		return repository{&gitrepo.Repository{
			Top: w.Tree, Prefix: filepath.ToSlash(prefix), Private: w.Git, Common: w.Git, Lent: w.Lent,
		}}, nil
	}
	r, err := gitrepo.Find(env.Project)
	return repository{r}, err
}
