package file

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// git takes a folder of any name for a repository, and runs what its config says,
// when it has a HEAD and the like. Such folders are read and not written, and none
// is made.

// isRepository reports whether git would take a folder for a repository.
func isRepository(dir *os.Root) bool {
	has := func(name string) bool {
		_, err := dir.Lstat(name)
		return err == nil
	}
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

// headOfRepository is what git accepts as the content of HEAD.
var headOfRepository = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(ref:\s*refs/|[0-9a-f]{40})`) })

// checkRepository refuses a write into a repository, and one that would make a
// folder into one.
func (pl *place) checkRepository(after []byte) error {
	made := strings.EqualFold(pl.name, "HEAD") && headOfRepository().Match(after)
	for _, f := range pl.folders {
		made = made || isRepository(f.root)
	}
	if !made {
		return nil
	}
	path := filepath.ToSlash(pl.asked)
	return tool.Faultf(tool.CodeProtected, "%q is protected: it would be part of a git repository, whose settings run commands", path).
		With("path", path).WithHint("Ask the person to do it. Give a file that is only named HEAD another name.")
}
