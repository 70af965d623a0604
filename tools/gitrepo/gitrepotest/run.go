// Package gitrepotest holds tests to what they make beside repositories.
package gitrepotest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// scratchVariable hands the folder of [Scratch] to other processes of the same test.
const scratchVariable = "RYE_TEST_GIT_SCRATCH"

// Scratch is where the tests of this package have their git folders of ours.
func Scratch() string { return os.Getenv(scratchVariable) }

// Run runs the tests of a package, for its TestMain, and fails them where this process has left a git folder in
// [Scratch]. Those that are killed leave theirs.
func Run(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "rye-git-test-")
	if err == nil {
		err = os.Setenv(scratchVariable, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code = m.Run()
	left, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("rye-git-%d-*", os.Getpid())))
	if err = errors.Join(err, os.RemoveAll(dir)); err == nil && len(left) == 0 {
		return code
	}
	fmt.Fprintf(os.Stderr, "git folders are left: %v, %v\n", left, err)
	return 1
}
