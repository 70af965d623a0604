// Package gitrepotest holds tests to what they make beside repositories.
package gitrepotest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
)

// Run runs the tests of a package, for its TestMain, and fails them where this process has left
// a git folder of ours among the temporary files.
func Run(m *testing.M) (code int) {
	one, err := gitrepo.Temporary()
	code = m.Run()
	left, globErr := filepath.Glob(strings.TrimRight(one, "0123456789") + "*") // one is among them
	if err = errors.Join(err, globErr, os.Remove(one)); err == nil && len(left) == 1 {
		return code
	}
	fmt.Fprintf(os.Stderr, "git folders are left beside %s: %v, %v\n", one, left, err)
	return 1
}
