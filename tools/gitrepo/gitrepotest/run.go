// Package gitrepotest holds tests to what they make beside repositories.
package gitrepotest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Run runs the tests of a package, for its TestMain, and fails them where this process has left
// a git folder of ours among the temporary files.
func Run(m *testing.M) (code int) {
	code = m.Run()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), fmt.Sprintf("rye-git-%d-*", os.Getpid())))
	if err == nil && len(left) == 0 {
		return code
	}
	fmt.Fprintf(os.Stderr, "git folders are left: %v, %v\n", left, err)
	return 1
}
